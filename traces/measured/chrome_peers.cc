// Compares arguments, threads and times.
#include "traces/measured/chrome_peers.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include "traces/measured/tensor_peers.h"
#include "traces/measured/time_span.h"

namespace bubblescope::traces {

namespace {

/// The tensor-parallel rank that an op states, or else all others of its thread.
class StatedTensors {
 public:
  explicit StatedTensors(const std::vector<ChromeOp>& ops) {
    for (const ChromeOp& op : ops)
      if (op.slice->tensor) of_thread_[op.slice->thread].insert(*op.slice->tensor);
  }

  std::optional<std::int64_t> find(const ChromeSlice& slice) const {
    if (slice.tensor) return slice.tensor;
    const auto found = of_thread_.find(slice.thread);
    if (found == of_thread_.end() || found->second.size() != 1) return {};
    return *found->second.begin();
  }

 private:
  std::map<std::uint32_t, std::set<std::int64_t>> of_thread_;
};

/// An op of a place, whatever thread ran it.
using OpKey = std::tuple<OpKind, std::int64_t, std::int64_t, std::int64_t, std::int32_t>;

OpKey key_of(const ChromeOp& op, std::int64_t microbatch) {
  return {op.named.op.kind, microbatch, op.slice->step.value_or(-1),
          op.slice->chunk.value_or(op.named.chunk.value_or(0)), op.named.op.slice};
}

std::int64_t microbatch_of(const ChromeOp& op) {
  return op.named.has_microbatch ? op.named.op.microbatch : op.slice->microbatch.value_or(-1);
}

bool overlap(const ChromeSlice& left, const ChromeSlice& right) {
  return left.start < right.end && right.start < left.end;
}

/// Whether two threads run the same op at the same time.
bool repeat_ops(const std::vector<const ChromeOp*>& ops) {
  std::map<OpKey, std::vector<const ChromeSlice*>> runs;
  for (const ChromeOp* op : ops) {
    const std::int64_t microbatch = microbatch_of(*op);
    if (microbatch < 0) continue;
    std::vector<const ChromeSlice*>& same = runs[key_of(*op, microbatch)];
    for (const ChromeSlice* other : same)
      if (other->thread != op->slice->thread && overlap(*other, *op->slice)) return true;
    constexpr std::size_t kMaxCompared = 64;
    if (same.size() < kMaxCompared) same.push_back(op->slice);
  }
  return false;
}

using Spans = std::vector<TimeSpan>;

/// The spans of every recorder's compute ops, by start.
std::vector<Spans> list_spans(const ChromeRanks& ranks, const std::vector<ChromeOp>& ops) {
  std::vector<Spans> spans(ranks.recorders.size());
  for (std::size_t at = 0; at < ops.size(); ++at)
    if (is_compute(ops[at].named.op.kind))
      spans[static_cast<std::size_t>(ranks.recorder_of[at])].push_back(
          {ops[at].slice->start, ops[at].slice->end});
  for (Spans& own : spans)
    std::sort(own.begin(), own.end(),
              [](const TimeSpan& left, const TimeSpan& right) { return left.start < right.start; });
  return spans;
}

/// Numbers each of these recorders as the n-th of those that run in step with it; whether any do.
bool number_those_in_step(ChromeRanks& ranks, const std::vector<Spans>& spans,
                          const std::vector<std::int32_t>& recorders) {
  std::vector<std::pair<std::size_t, std::int32_t>> groups;  // the first recorder, and the size
  for (const std::int32_t recorder : recorders) {
    const auto own = static_cast<std::size_t>(recorder);
    const auto group = std::find_if(groups.begin(), groups.end(), [&](const auto& one) {
      return run_in_step(spans[one.first], spans[own], 0);
    });
    ranks.recorders[own].tensor = group == groups.end() ? 0 : group->second++;
    if (group == groups.end()) groups.emplace_back(own, 1);
  }
  return groups.size() < recorders.size();
}

}  // namespace

std::vector<Peer> find_peers(const std::vector<ChromeOp>& ops,
                             const std::vector<PeerPlace>& places) {
  const StatedTensors tensors(ops);
  std::vector<Peer> peers;
  std::map<PeerPlace, std::vector<const ChromeOp*>> computes;
  std::map<PeerPlace, std::set<Peer>> known;
  for (std::size_t at = 0; at < ops.size(); ++at) {
    const ChromeSlice& slice = *ops[at].slice;
    peers.push_back({tensors.find(slice).value_or(0), slice.rank.value_or(0), 0});
    if (!is_compute(ops[at].named.op.kind)) continue;
    computes[places[at]].push_back(&ops[at]);
    known[places[at]].insert(peers.back());
  }
  std::set<PeerPlace> by_thread;
  for (const auto& [place, own] : computes)
    if (known.at(place).size() == 1 && repeat_ops(own)) by_thread.insert(place);
  for (std::size_t at = 0; at < ops.size(); ++at) {
    const auto own = known.find(places[at]);
    if (own == known.end()) continue;
    if (by_thread.contains(places[at]))
      peers[at][2] = ops[at].slice->thread;
    else if (!own->second.contains(peers[at]))
      peers[at] = *own->second.begin();  // a message, which may state its peer's rank
  }
  return peers;
}

ChromeRanks number_tensor_peers(ChromeRanks ranks, const std::vector<ChromeOp>& ops,
                                const std::vector<std::vector<std::int32_t>>& recorders) {
  const StatedTensors tensors(ops);
  bool are_stated = true;
  std::vector<std::optional<std::int32_t>> stated(ranks.recorders.size());
  for (std::size_t at = 0; at < ops.size(); ++at) {
    if (!is_compute(ops[at].named.op.kind)) continue;
    const std::optional<std::int64_t> tensor = tensors.find(*ops[at].slice);
    are_stated =
        are_stated && tensor && *tensor >= 0 && *tensor <= std::numeric_limits<std::int32_t>::max();
    if (are_stated)
      stated[static_cast<std::size_t>(ranks.recorder_of[at])] = static_cast<std::int32_t>(*tensor);
  }
  if (are_stated) {
    for (std::size_t at = 0; at < stated.size(); ++at) ranks.recorders[at].tensor = stated[at];
    return ranks;
  }
  if (std::all_of(recorders.begin(), recorders.end(),
                  [](const auto& of_place) { return of_place.size() < 2; }))
    return ranks;
  const std::vector<Spans> spans = list_spans(ranks, ops);
  bool any_in_step = false;
  for (const std::vector<std::int32_t>& of_place : recorders)
    any_in_step = number_those_in_step(ranks, spans, of_place) || any_in_step;
  if (!any_in_step)
    for (Recorder& recorder : ranks.recorders) recorder.tensor.reset();
  return ranks;
}

}  // namespace bubblescope::traces

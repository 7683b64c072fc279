// Compares arguments, threads and times.
#include "traces/measured/chrome_peers.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include "traces/measured/tensor_peers.h"
#include "traces/measured/time_span.h"

namespace bubblescope::traces {

namespace {

/// A number that an op states, or else all others of its thread. Compute ops come first: a message
/// may state the rank of its peer.
class StatedNumbers {
 public:
  using Number = std::optional<std::int64_t> ChromeSlice::*;

  StatedNumbers(const std::vector<ChromeOp>& ops, Number number) : number_(number) {
    std::map<std::uint32_t, std::set<std::int64_t>> of_messages;
    for (const ChromeOp& op : ops)
      if (const std::optional<std::int64_t>& stated = op.slice->*number)
        (is_compute(op.named.op.kind) ? of_thread_ : of_messages)[op.slice->thread].insert(*stated);
    of_thread_.merge(of_messages);
  }

  std::optional<std::int64_t> find(const ChromeSlice& slice) const {
    if (slice.*number_) return slice.*number_;
    const auto found = of_thread_.find(slice.thread);
    if (found == of_thread_.end() || found->second.size() != 1) return {};
    return *found->second.begin();
  }

 private:
  Number number_;
  std::map<std::uint32_t, std::set<std::int64_t>> of_thread_;
};

/// An op of a place, whatever thread ran it.
using OpKey =
    std::tuple<OpKind, std::int32_t, std::int64_t, std::int64_t, std::int64_t, std::int32_t>;

OpKey key_of(const ChromeOp& op, std::int64_t microbatch) {
  const Op& named = op.named.op;
  return {named.kind,
          op.named.has_stage ? named.stage : -1,
          microbatch,
          op.slice->step.value_or(-1),
          op.slice->chunk.value_or(op.named.chunk.value_or(0)),
          named.slice};
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

/// Returns the distance from `wanted` to the nearest of `times`, which are sorted.
Nanos find_distance(const std::vector<Nanos>& times, Nanos wanted) {
  Nanos distance = std::numeric_limits<Nanos>::max();
  const auto after = std::lower_bound(times.begin(), times.end(), wanted);
  if (after != times.end()) distance = *after - wanted;
  if (after != times.begin()) distance = std::min(distance, wanted - *std::prev(after));
  return distance;
}

/// The peers of a place by their compute ops, beside which their messages lie.
class PeersOfPlace {
 public:
  void add(const ChromeSlice& slice, const Peer& peer) {
    of_thread_[slice.thread].insert(peer);
    Times& times = times_[peer];
    times.starts.push_back(slice.start);
    times.ends.push_back(slice.end);
  }

  void sort_times() {
    for (auto& [_, times] : times_) {
      std::sort(times.starts.begin(), times.starts.end());
      std::sort(times.ends.begin(), times.ends.end());
    }
  }

  bool has(const Peer& peer) const { return times_.contains(peer); }

  /// The only peer that computes on the thread of a message. Else the peer with the op that ends
  /// next to the start of a send, or starts next to the end of a receive.
  Peer find(const ChromeOp& message) const {
    const ChromeSlice& slice = *message.slice;
    const auto own = of_thread_.find(slice.thread);
    if (own != of_thread_.end() && own->second.size() == 1) return *own->second.begin();
    const bool is_sent = is_send(message.named.op.kind);
    const auto distance = [&](const Times& times) {
      return is_sent ? find_distance(times.ends, slice.start)
                     : find_distance(times.starts, slice.end);
    };
    return std::min_element(times_.begin(), times_.end(),
                            [&](const auto& left, const auto& right) {
                              return distance(left.second) < distance(right.second);
                            })
        ->first;
  }

 private:
  struct Times {
    std::vector<Nanos> starts;
    std::vector<Nanos> ends;
  };
  std::map<std::uint32_t, std::set<Peer>> of_thread_;
  std::map<Peer, Times> times_;
};

using Spans = std::vector<TimeSpan>;

/// The spans of every recorder's compute ops, by start.
std::vector<Spans> list_spans(const ChromeRanks& ranks, const std::vector<ChromeOp>& ops) {
  std::vector<Spans> spans(ranks.recorders.size());
  for (std::size_t at = 0; at < ops.size(); ++at)
    if (is_compute(ops[at].named.op.kind))
      spans[static_cast<std::size_t>(ranks.recorder_of[at])].push_back(
          {ops[at].slice->start, ops[at].slice->end});
  for (Spans& own : spans) sort_by_start(own);
  return spans;
}

/// Numbers each of these recorders as the n-th of those that run in step with it. Returns how many
/// do, for each group.
std::vector<std::int32_t> number_those_in_step(ChromeRanks& ranks, const std::vector<Spans>& spans,
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
  std::vector<std::int32_t> sizes;
  for (const auto& [_, size] : groups) sizes.push_back(size);
  return sizes;
}

}  // namespace

std::vector<Peer> find_peers(const std::vector<ChromeOp>& ops,
                             const std::vector<PeerPlace>& places) {
  const StatedNumbers tensors(ops, &ChromeSlice::tensor);
  const StatedNumbers ranks(ops, &ChromeSlice::rank);
  std::vector<Peer> peers;
  std::map<PeerPlace, std::vector<const ChromeOp*>> computes;
  std::map<PeerPlace, std::set<Peer>> stated;
  for (std::size_t at = 0; at < ops.size(); ++at) {
    const ChromeSlice& slice = *ops[at].slice;
    peers.push_back(Peer{tensors.find(slice), ranks.find(slice), std::nullopt});
    if (!is_compute(ops[at].named.op.kind)) continue;
    computes[places[at]].push_back(&ops[at]);
    stated[places[at]].insert(peers.back());
  }
  std::set<PeerPlace> by_thread;
  for (const auto& [place, own] : computes)
    if (stated.at(place).size() == 1 && repeat_ops(own)) by_thread.insert(place);
  std::map<PeerPlace, PeersOfPlace> known;
  for (std::size_t at = 0; at < ops.size(); ++at) {
    if (by_thread.contains(places[at])) peers[at][2] = ops[at].slice->thread;
    if (is_compute(ops[at].named.op.kind)) known[places[at]].add(*ops[at].slice, peers[at]);
  }
  for (auto& [_, of_place] : known) of_place.sort_times();
  for (std::size_t at = 0; at < ops.size(); ++at)
    if (const auto own = known.find(places[at]); own != known.end() && !own->second.has(peers[at]))
      peers[at] = own->second.find(ops[at]);  // a message, which may state its peer's rank
  return peers;
}

ChromeRanks number_tensor_peers(ChromeRanks ranks, const std::vector<ChromeOp>& ops,
                                const std::vector<std::vector<std::int32_t>>& recorders) {
  const StatedNumbers tensors(ops, &ChromeSlice::tensor);
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
  std::set<std::int32_t> sizes;  // of the groups of places that have several ranks
  for (const std::vector<std::int32_t>& of_place : recorders) {
    const std::vector<std::int32_t> own = number_those_in_step(ranks, spans, of_place);
    if (of_place.size() > 1) sizes.insert(own.begin(), own.end());
  }
  if (sizes.size() == 1 && *sizes.begin() > 1) {
    ranks.remarks.notes.push_back(describe_assumed_peers("ranks of the same args.pp_rank"));
    return ranks;
  }
  for (Recorder& recorder : ranks.recorders) recorder.tensor.reset();
  if (sizes.size() > 1)
    ranks.remarks.doubts.emplace_back(
        "some ranks of the same args.pp_rank run every op at the same time, as tensor-parallel "
        "ones "
        "do, and others do not: all count as replicas; state args.tp_rank or args.dp_rank");
  return ranks;
}

}  // namespace bubblescope::traces

// Compares the recorders of each rank.
#include "traces/measured/tensor_peers.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "sim/ir/quantile.h"
#include "traces/measured/kept_recorders.h"
#include "traces/measured/rank_numbers.h"

namespace bubblescope::traces {

namespace {

/// Recorders by their number in the tensor-parallel group.
using Group = std::map<std::int32_t, std::size_t>;

struct Groups {
  std::vector<Group> all;
  bool count_job = false;  ///< ranks count through the job, not within their pipeline
};

using Spans = std::vector<TimeSpan>;

/// The groups, by rank and replica. Where no two recorders have the same, these count through the
/// job, in which the ranks of a group follow each other.
Groups find_groups(const ObservedTrace& trace, std::size_t tensors) {
  const std::vector<std::int32_t> replicas = find_replicas(trace);
  std::map<std::pair<std::int32_t, std::int32_t>, Group> by_place;
  std::map<std::pair<std::int32_t, std::int32_t>, std::size_t> by_rank;
  for (std::size_t at = 0; at < trace.recorders.size(); ++at) {
    const Recorder& recorder = trace.recorders[at];
    if (!recorder.rank) return {};
    by_place[{*recorder.rank, replicas[at]}].emplace(*recorder.tensor, at);
    by_rank.emplace(std::pair(replicas[at], *recorder.rank), at);
  }
  Groups groups{{}, by_place.size() == trace.recorders.size()};
  if (!groups.count_job) {
    for (auto& [_, group] : by_place) groups.all.push_back(std::move(group));
    return groups;
  }
  if (trace.recorders.size() % tensors != 0) return {};
  for (const auto& [_, at] : by_rank) {
    if (groups.all.empty() || groups.all.back().size() == tensors) groups.all.emplace_back();
    if (!groups.all.back().emplace(*trace.recorders[at].tensor, at).second) return {};
  }
  return groups;
}

/// Ranks of groups that count through the job are `tensors` apart.
ObservedTrace count_by_groups(ObservedTrace trace, std::size_t tensors) {
  const auto size = static_cast<std::int32_t>(tensors);
  const std::int32_t rest = *trace.recorders.front().rank % size;
  if (std::any_of(trace.recorders.begin(), trace.recorders.end(),
                  [&](const Recorder& recorder) { return *recorder.rank % size != rest; }))
    return trace;
  for (Recorder& recorder : trace.recorders) recorder.rank = *recorder.rank / size;
  return trace;
}

}  // namespace

std::string describe_assumed_peers(const std::string& ranks) {
  return ranks +
         " run every op at the same time, so they count as tensor-parallel, of which the first is "
         "shown; state args.dp_rank if they are replicas";
}

Nanos find_clock_difference(std::span<const TimeSpan> left, std::span<const TimeSpan> right) {
  std::vector<Nanos> differences;
  for (std::size_t at = 0; at < std::min(left.size(), right.size()); ++at)
    differences.push_back(right[at].start - left[at].start);
  if (differences.empty()) return 0;
  return quantile(std::move(differences), 50);
}

bool run_in_step(std::span<const TimeSpan> left, std::span<const TimeSpan> right, Nanos apart) {
  constexpr Nanos kOfOp = 100;
  constexpr Nanos kOfShortOp = 20;
  constexpr Nanos kJitter = 20'000;
  if (left.size() != right.size() || left.empty()) return false;
  for (std::size_t at = 0; at < left.size(); ++at) {
    const Nanos length = left[at].length();
    const Nanos exact = std::max(length / kOfOp, std::min(length / kOfShortOp, kJitter));
    if (std::abs(left[at].start + apart - right[at].start) > exact ||
        std::abs(left[at].end + apart - right[at].end) > exact)
      return false;
  }
  return true;
}

std::vector<Spans> list_spans(const ObservedTrace& trace) {
  std::vector<Spans> spans(trace.recorders.size());
  for (const ObservedOp& observed : trace.ops)
    if (is_compute(observed.op.kind))
      spans[static_cast<std::size_t>(observed.recorder)].push_back({observed.start, observed.end});
  for (Spans& own : spans) sort_by_start(own);
  return spans;
}

ObservedTrace without_tensor_peers(ObservedTrace trace) {
  std::set<std::int32_t> tensors;
  for (const Recorder& recorder : trace.recorders) {
    if (!recorder.tensor) return trace;
    tensors.insert(*recorder.tensor);
  }
  if (tensors.size() < 2) return trace;
  const Groups groups = find_groups(trace, tensors.size());
  if (groups.all.empty()) return trace;
  const std::vector<Spans> spans = list_spans(trace);
  std::vector<bool> is_kept(trace.recorders.size(), false);
  bool are_in_step = true;
  for (const Group& group : groups.all) {
    const std::size_t first = group.begin()->second;
    is_kept[first] = true;
    for (const auto& [_, other] : group) {
      // Files may have clocks of their own.
      const Nanos apart = trace.recorders[first].where == trace.recorders[other].where
                              ? 0
                              : find_clock_difference(spans[first], spans[other]);
      are_in_step = are_in_step && run_in_step(spans[first], spans[other], apart);
    }
  }
  if (!are_in_step)
    trace.remarks.doubts.emplace_back(
        "tensor-parallel ranks do not run their ops at the same time, as they do in lockstep; the "
        "first of each group is shown, and what another one took longer is not");
  trace.remarks.notes.emplace_back(kFirstOfTensorRanks);
  trace = keep_recorders(std::move(trace), is_kept);
  return groups.count_job ? count_by_groups(std::move(trace), tensors.size()) : trace;
}

}  // namespace bubblescope::traces

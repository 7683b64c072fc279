// Groups recorders by the ops that they ran.
#include "traces/measured/separate_replicas.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "traces/measured/distinct_numbers.h"
#include "traces/measured/kept_recorders.h"
#include "traces/measured/number_ranges.h"
#include "traces/measured/rank_numbers.h"
#include "traces/measured/tensor_peers.h"
#include "traces/measured/time_span.h"

namespace bubblescope::traces {

namespace {

/// Stages with their micro-batches: ranks that alternate on a stage's micro-batches are not
/// replicas.
using Share = std::set<std::pair<std::int32_t, std::int32_t>>;

/// The share of every recorder; nullopt where an op does not state its stage.
std::optional<std::vector<Share>> shares_by_recorder(const ObservedTrace& trace) {
  std::vector<Share> shares(trace.recorders.size());
  for (const ObservedOp& observed : trace.ops) {
    if (!is_compute(observed.op.kind)) continue;
    if (observed.chunk || observed.replica != 0) return {};
    shares[observed.recorder].emplace(observed.op.stage, observed.op.microbatch);
  }
  return shares;
}

bool differ(const std::vector<Share>& shares) {
  return std::set<Share>(shares.begin(), shares.end()).size() == shares.size();
}

/// Recorders that run in step, the first of which is shown.
using Groups = std::map<std::size_t, std::vector<std::size_t>>;

/// "ranks (0, 1), (2, 3)", or without numbers where these are not stated.
std::string name_groups(const Groups& groups, const std::vector<Recorder>& recorders) {
  constexpr std::size_t kMaxNamed = 8;
  if (are_of_processes(recorders) ||
      !are_distinct(recorders, [](const Recorder& one) { return one.rank; }))
    return "ranks of the same stages";
  std::vector<std::string> names;
  for (const auto& [_, group] : groups) {
    if (group.size() < 2) continue;
    if (names.size() == kMaxNamed) {
      names.emplace_back("...");
      break;
    }
    std::set<std::int32_t> ranks;
    for (const std::size_t at : group) ranks.insert(*recorders[at].rank);
    NumberRanges ranges;
    for (const std::int32_t rank : ranks) ranges.add(rank, rank);
    names.push_back("(" + ranges.text() + ")");
  }
  return fmt::format("ranks {}", fmt::join(names, ", "));
}

/// Keeps the first of the recorders with the same share that run in step, as tensor-parallel ranks
/// do, if that leaves equally many of every share.
ObservedTrace without_ranks_in_step(ObservedTrace trace, const std::vector<Share>& shares) {
  const std::vector<std::vector<TimeSpan>> spans = list_spans(trace);
  std::map<Share, std::vector<std::size_t>> kept;
  Groups groups;
  for (std::size_t at = 0; at < shares.size(); ++at) {
    std::vector<std::size_t>& others = kept[shares[at]];
    const auto first = std::find_if(others.begin(), others.end(), [&](std::size_t other) {
      return run_in_step(spans[other], spans[at], 0);
    });
    groups[first == others.end() ? at : *first].push_back(at);
    if (first == others.end()) others.push_back(at);
  }
  const std::size_t count = kept.begin()->second.size();
  const bool are_even = std::all_of(kept.begin(), kept.end(), [count](const auto& of_share) {
    return of_share.second.size() == count;
  });
  if (!are_even || groups.size() == shares.size()) return trace;
  std::vector<bool> is_kept(shares.size(), false);
  for (const auto& [first, _] : groups) is_kept[first] = true;
  trace.remarks.notes.emplace_back(kFirstOfTensorRanks);
  trace.remarks.notes.push_back(describe_assumed_peers(name_groups(groups, trace.recorders)));
  return keep_recorders(std::move(trace), is_kept);
}

/// Replicas by the first one that runs in step with each, on one rank.
using FirstInStep = std::map<std::int32_t, std::int32_t>;

/// The same on all ranks, whose files share a clock; empty where ranks differ or have no number.
FirstInStep find_first_in_step(const ObservedTrace& trace) {
  const std::vector<std::int32_t> replicas = find_replicas(trace);
  for (const ObservedOp& observed : trace.ops)  // a recorder may be a rank of all replicas
    if (observed.replica != replicas[static_cast<std::size_t>(observed.recorder)]) return {};
  const std::vector<std::vector<TimeSpan>> spans = list_spans(trace);
  std::map<std::int32_t, std::map<std::int32_t, std::size_t>> by_rank;  // by replica
  for (std::size_t at = 0; at < trace.recorders.size(); ++at) {
    const Recorder& recorder = trace.recorders[at];
    if (!recorder.rank || recorder.is_process || recorder.tensor) return {};
    if (!by_rank[*recorder.rank].emplace(replicas[at], at).second) return {};
  }
  std::optional<FirstInStep> common;
  for (const auto& [_, recorders] : by_rank) {
    FirstInStep first;
    for (const auto& [replica, at] : recorders) {
      std::int32_t& known = first[replica] = replica;
      for (const auto& [other, of_other] : recorders)
        if (other < known && run_in_step(spans[of_other], spans[at], 0)) known = other;
    }
    if (common && *common != first) return {};
    common = first;
  }
  return common.value_or(FirstInStep{});
}

/// Keeps the first of the replicas that run in step on all ranks, as tensor-parallel ranks in files
/// of their own do, if that leaves several ranks of each.
ObservedTrace without_replicas_in_step(ObservedTrace trace) {
  if (!trace.source.has_any_slices) return trace;
  const FirstInStep first = find_first_in_step(trace);
  std::map<std::int32_t, std::int32_t> sizes;
  for (const auto& [_, kept] : first) ++sizes[kept];
  if (sizes.empty() || sizes.begin()->second < 2) return trace;
  std::map<std::int32_t, std::int32_t> numbers;  // of those that are kept
  for (const auto& [replica, size] : sizes) {
    if (size != sizes.begin()->second) return trace;
    numbers.emplace(replica, static_cast<std::int32_t>(numbers.size()));
  }
  const std::vector<std::int32_t> replicas = find_replicas(trace);
  std::vector<bool> is_kept;
  for (const std::int32_t replica : replicas) is_kept.push_back(numbers.contains(replica));
  trace = keep_recorders(std::move(trace), is_kept);
  for (ObservedOp& observed : trace.ops) observed.replica = numbers.at(observed.replica);
  std::erase_if(trace.activities, [&](const ObservedActivity& activity) {
    return !numbers.contains(activity.replica);
  });
  for (ObservedActivity& activity : trace.activities)
    activity.replica = numbers.at(activity.replica);
  trace.remarks.notes.emplace_back(kFirstOfTensorRanks);
  trace.remarks.notes.push_back(describe_assumed_peers("ranks of the same args.pp_rank"));
  return trace;
}

/// The numbers of replicas, by the first rank in the job of each.
using ReplicaNumbers = std::map<std::int32_t, std::int32_t>;

/// The place of every replica's ranks in their data-parallel groups; nullopt where a rank has none,
/// or where replicas share a place: groups may be only a part of the ranks that hold a layer.
std::optional<ReplicaNumbers> find_data_ranks(const ObservedTrace& trace) {
  ReplicaNumbers numbers;
  for (const ObservedOp& observed : trace.ops) {
    const std::optional<std::int32_t> place = recorder_of(trace, observed).data_rank;
    if (!place || numbers.emplace(observed.replica, *place).first->second != *place) return {};
  }
  std::set<std::int32_t> places;
  for (const auto& [_, place] : numbers)
    if (!places.insert(place).second) return {};
  return numbers;
}

/// Numbers shares by their first stages; empty where two begin with the same stage.
std::map<Share, std::int32_t> number_shares(const std::vector<Share>& shares) {
  std::map<std::int32_t, Share> by_stage;
  for (const Share& share : shares) {
    if (share.empty()) return {};
    const auto [found, is_new] = by_stage.emplace(share.begin()->first, share);
    if (!is_new && found->second != share) return {};
  }
  std::map<Share, std::int32_t> numbers;
  for (const auto& [_, share] : by_stage)
    numbers.emplace(share, static_cast<std::int32_t>(numbers.size()));
  return numbers;
}

ReplicaNumbers count_replicas(const ObservedTrace& trace) {
  ReplicaNumbers numbers;
  for (const ObservedOp& observed : trace.ops) numbers.emplace(observed.replica, 0);
  std::int32_t next = 0;
  for (auto& [_, number] : numbers) number = next++;
  return numbers;
}

}  // namespace

ObservedTrace number_replicas(ObservedTrace trace) {
  const auto is_by_job_rank = [](const Recorder& recorder) { return recorder.is_by_job_rank; };
  if (trace.ops.empty() ||
      !std::all_of(trace.recorders.begin(), trace.recorders.end(), is_by_job_rank))
    return trace;
  const ReplicaNumbers numbers = find_data_ranks(trace).value_or(count_replicas(trace));
  for (ObservedOp& observed : trace.ops) observed.replica = numbers.at(observed.replica);
  std::erase_if(trace.activities, [&](const ObservedActivity& activity) {
    return !numbers.contains(activity.replica);
  });
  for (ObservedActivity& activity : trace.activities)
    activity.replica = numbers.at(activity.replica);
  return trace;
}

ObservedTrace separate_replicas(ObservedTrace trace) {
  const auto knows = [](const Recorder& recorder) { return recorder.has_replica; };
  if (std::any_of(trace.recorders.begin(), trace.recorders.end(), knows)) return trace;
  std::optional<std::vector<Share>> shares = shares_by_recorder(trace);
  if (!shares) return without_replicas_in_step(std::move(trace));
  if (differ(*shares)) return trace;
  trace = without_ranks_in_step(std::move(trace), *shares);
  shares = shares_by_recorder(trace);
  if (differ(*shares)) return trace;
  std::vector<std::size_t> order(trace.recorders.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t left, std::size_t right) {
    return trace.recorders[left].rank < trace.recorders[right].rank;
  });
  // Traces of the same stages are of the same rank, whether or not any states its number.
  const bool any_rank =
      std::any_of(trace.recorders.begin(), trace.recorders.end(),
                  [](const Recorder& recorder) { return recorder.rank.has_value(); });
  const std::map<Share, std::int32_t> numbers =
      any_rank ? std::map<Share, std::int32_t>{} : number_shares(*shares);
  std::map<Share, std::int32_t> seen;
  std::map<Share, std::optional<std::int32_t>> rank_of;
  std::vector<std::int32_t> replica(order.size());
  for (const std::size_t at : order) {
    const Share& mine = (*shares)[at];
    replica[at] = seen[mine]++;
    std::optional<std::int32_t>& rank = trace.recorders[at].rank;
    if (const auto number = numbers.find(mine); number != numbers.end()) rank = number->second;
    rank = rank_of.emplace(mine, rank).first->second;
  }
  for (ObservedOp& observed : trace.ops) observed.replica = replica[observed.recorder];
  for (ObservedActivity& activity : trace.activities) activity.replica = replica[activity.recorder];
  return trace;
}

}  // namespace bubblescope::traces

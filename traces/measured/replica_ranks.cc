// Compares the ranks of replicas.
#include "traces/measured/replica_ranks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "sim/ir/error.h"
#include "traces/measured/rank_numbers.h"

namespace bubblescope::traces {

namespace {

/// The numbers of ranks and their recorders, in order; those without a number are the last.
using RankedRecorders = std::vector<std::pair<std::int32_t, std::size_t>>;
using ByReplica = std::map<std::int32_t, RankedRecorders>;

constexpr std::int32_t kNone = std::numeric_limits<std::int32_t>::max();

ByReplica sort_by_replica(const ObservedTrace& trace) {
  const std::vector<std::int32_t> replicas = find_replicas(trace);
  ByReplica sorted;
  for (std::size_t at = 0; at < trace.recorders.size(); ++at)
    sorted[replicas[at]].emplace_back(trace.recorders[at].rank.value_or(kNone), at);
  for (auto& [_, ranks] : sorted) std::sort(ranks.begin(), ranks.end());
  return sorted;
}

/// Whether a rank of one replica has the number of a rank of another one.
bool share_numbers(const ByReplica& replicas) {
  std::set<std::int32_t> seen;
  for (const auto& [_, ranks] : replicas) {
    std::set<std::int32_t> own;
    for (const auto& [rank, recorder] : ranks) {
      if (rank == kNone) return false;
      own.insert(rank);
    }
    for (const std::int32_t rank : own)
      if (!seen.insert(rank).second) return true;
  }
  return false;
}

/// The replicas in the order of their numbers, if each ends before the next one begins.
std::vector<const RankedRecorders*> find_blocks(const ByReplica& replicas) {
  std::vector<const RankedRecorders*> blocks;
  for (const auto& [_, ranks] : replicas) blocks.push_back(&ranks);
  std::sort(blocks.begin(), blocks.end(),
            [](const RankedRecorders* left, const RankedRecorders* right) {
              return left->front() < right->front();
            });
  for (std::size_t at = 0; at < blocks.size(); ++at) {
    if (blocks[at]->back().first == kNone) return {};
    if (at > 0 && blocks[at - 1]->back().first >= blocks[at]->front().first) return {};
  }
  return blocks;
}

[[noreturn]] void refuse_unequal(const ObservedTrace& trace, const ByReplica& replicas) {
  std::string counts;
  for (const auto& [replica, ranks] : replicas)
    counts += fmt::format("{}{} of replica {}", counts.empty() ? "" : ", ", ranks.size(), replica);
  throw Error(
      fmt::format("{}: the replicas that ops state have unlike ranks ({}), which count through the "
                  "whole job, so nothing shows which of them are missing; state args.pp_rank of "
                  "every op, or give all ranks",
                  trace.recorders.front().where, counts));
}

/// Numbers the ranks of every replica like those of the first one. Processes are counted, because
/// their numbers may have gaps.
ObservedTrace number_alike(ObservedTrace trace, const ByReplica& replicas) {
  const bool are_processes = std::any_of(
      trace.recorders.begin(), trace.recorders.end(),
      [](const Recorder& recorder) { return recorder.is_process && !recorder.is_device; });
  std::vector<const RankedRecorders*> blocks;
  if (!are_processes) blocks = find_blocks(replicas);
  const RankedRecorders& first = blocks.empty() ? replicas.begin()->second : *blocks.front();
  for (const auto& [_, ranks] : replicas) {
    if (ranks.size() != first.size()) refuse_unequal(trace, replicas);
    for (std::size_t place = 0; place < ranks.size(); ++place) {
      // Blocks keep the gaps of ranks that are missing in all.
      const std::int32_t own = ranks[place].first - ranks.front().first;
      const std::int32_t expected = first[place].first - first.front().first;
      if (!blocks.empty() && own != expected) refuse_unequal(trace, replicas);
      trace.recorders[ranks[place].second].rank =
          blocks.empty() ? static_cast<std::int32_t>(place) : first[place].first;
    }
  }
  return trace;
}

}  // namespace

ObservedTrace number_within_replicas(ObservedTrace trace) {
  const auto may_count_job = [](const Recorder& recorder) {
    return recorder.has_replica && recorder.may_count_job;
  };
  if (!std::all_of(trace.recorders.begin(), trace.recorders.end(), may_count_job)) return trace;
  const ByReplica replicas = sort_by_replica(trace);
  if (replicas.size() < 2 || share_numbers(replicas)) return trace;
  if (!state_stages(trace)) return number_alike(std::move(trace), replicas);
  for (Recorder& recorder : trace.recorders) recorder.rank.reset();
  return trace;
}

}  // namespace bubblescope::traces

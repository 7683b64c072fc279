// Compares the arguments, threads and processes of ops.
#include "traces/measured/chrome_ranks.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "sim/ir/error.h"
#include "sim/ir/number.h"
#include "sim/ir/shape.h"
#include "traces/measured/chrome_processes.h"
#include "traces/measured/chrome_threads.h"

namespace bubblescope::traces {

namespace {

std::optional<std::int64_t> find_argument(const ChromeSlice& slice, bool of_pipeline) {
  if (!of_pipeline) return slice.rank;
  // Beside a chunk, the stage is that of a rank.
  return slice.pp_rank || !slice.chunk ? slice.pp_rank : slice.stage;
}

/// Whether all ops state their rank in this way.
bool have_arguments(const std::vector<ChromeOp>& ops, bool of_pipeline) {
  return std::all_of(ops.begin(), ops.end(), [&](const ChromeOp& op) {
    const std::optional<std::int64_t> rank = find_argument(*op.slice, of_pipeline);
    return rank && *rank >= 0 && *rank < kMaxRanks;
  });
}

/// By the ranks in arguments. Processes with the same rank of a pipeline are replicas.
ChromeRanks rank_by_arguments(const ChromeEvents& events, const std::vector<ChromeOp>& ops,
                              const std::string& file, bool of_pipeline) {
  ChromeRanks ranks;
  std::map<std::pair<std::int64_t, std::string>, std::int32_t> recorders;  // by rank and process
  const auto process_of = [&](const ChromeOp& op) {
    return of_pipeline ? events.threads[op.slice->thread].process : std::string();
  };
  for (const ChromeOp& op : ops) {
    const std::int64_t rank = *find_argument(*op.slice, of_pipeline);
    const auto [found, is_new] = recorders.emplace(
        std::pair(rank, process_of(op)), static_cast<std::int32_t>(ranks.recorders.size()));
    ranks.recorder_of.push_back(found->second);
    if (is_new) ranks.recorders.push_back({file, static_cast<std::int32_t>(rank)});
  }
  std::set<std::string> pids;
  for (const auto& [key, _] : recorders) pids.insert(key.second);
  using Place = std::tuple<std::int64_t, std::int32_t, std::string>;  // rank, number and process
  std::map<Place, std::int32_t> ordered;
  const std::map<std::string, ProcessRank> numbers = rank_processes(events, pids);
  for (const auto& [key, recorder] : recorders)
    ordered[{key.first, numbers.at(key.second).rank.value_or(0), key.second}] = recorder;
  ranks.replica_of.resize(ranks.recorders.size());
  std::map<std::int64_t, std::int32_t> replicas;  // by rank
  for (const auto& [place, recorder] : ordered)
    ranks.replica_of[static_cast<std::size_t>(recorder)] = replicas[std::get<0>(place)]++;
  return ranks;
}

/// Every process is a rank.
ChromeRanks rank_by_processes(const ChromeEvents& events, const std::vector<ChromeOp>& ops,
                              const std::string& file) {
  std::set<std::string> pids;
  for (const ChromeOp& op : ops) pids.insert(events.threads[op.slice->thread].process);
  const std::map<std::string, ProcessRank> numbers = rank_processes(events, pids);
  ChromeRanks ranks;
  std::map<std::string, std::int32_t> recorders;
  for (const ChromeOp& op : ops) {
    const std::string& pid = events.threads[op.slice->thread].process;
    const auto [found, is_new] =
        recorders.emplace(pid, static_cast<std::int32_t>(ranks.recorders.size()));
    ranks.recorder_of.push_back(found->second);
    if (!is_new) continue;
    const ProcessRank& number = numbers.at(pid);
    Recorder& recorder = ranks.recorders.emplace_back();
    recorder.where = file;
    recorder.rank = number.rank;
    recorder.is_process = !number.is_stated;
  }
  ranks.replica_of.resize(ranks.recorders.size());
  return ranks;
}

}  // namespace

ChromeRanks find_chrome_ranks(const ChromeEvents& events, const std::vector<ChromeOp>& ops,
                              const std::string& file) {
  for (const bool of_pipeline : {true, false})
    if (have_arguments(ops, of_pipeline)) return rank_by_arguments(events, ops, file, of_pipeline);
  if (std::optional<ChromeRanks> ranks = rank_by_threads(events, ops, file))
    return *std::move(ranks);
  return rank_by_processes(events, ops, file);
}

}  // namespace bubblescope::traces

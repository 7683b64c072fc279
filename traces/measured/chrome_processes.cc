// Reads the numbers of processes from their metadata.
#include "traces/measured/chrome_processes.h"

#include <algorithm>
#include <optional>
#include <tuple>
#include <utility>

#include "sim/ir/number.h"
#include "traces/measured/distinct_numbers.h"
#include "traces/measured/rank_words.h"

namespace bubblescope::traces {

namespace {

using ProcessRanks = std::map<std::string, ProcessRank>;

bool have_distinct_ranks(const ProcessRanks& ranks) {
  return are_distinct(ranks, [](const auto& process) { return process.second.rank; });
}

/// Returns the rank that a name states.
ProcessRank rank_in(const std::string& name) {
  const std::optional<NamedNumber> found = find_rank_number(name);
  if (!found) return {};
  return {found->number, found->is_rank, found->is_device};
}

/// The ranks that the names of processes state, if they state any.
ProcessRanks rank_by_names(const ChromeEvents& events, const std::set<std::string>& pids) {
  ProcessRanks ranks;
  for (const std::string& pid : pids) {
    const auto process = events.processes.find(pid);
    if (process != events.processes.end())
      ranks[pid] = rank_in(process->second.name);
    else
      ranks[pid] = {};
  }
  return ranks;
}

/// The places of processes in a viewer, counted from 0; nothing where these do not differ.
ProcessRanks rank_by_places(const ChromeEvents& events, const std::set<std::string>& pids) {
  std::map<std::int64_t, std::string> ordered;
  for (const std::string& pid : pids) {
    const auto process = events.processes.find(pid);
    if (process == events.processes.end() || !process->second.sort_index) return {};
    ordered.emplace(*process->second.sort_index, pid);
  }
  if (ordered.size() < 2 || ordered.size() < pids.size()) return {};
  ProcessRanks ranks;
  std::int32_t next = 0;
  for (const auto& [_, pid] : ordered) ranks[pid].rank = next++;
  return ranks;
}

/// The number of a rank that is nothing but that.
std::optional<std::int32_t> parse_rank(const std::string& text) {
  const std::optional<std::int32_t> number = parse_number<std::int32_t>(text);
  return number && *number >= 0 ? number : std::nullopt;
}

/// The numbers that pids name ("rank 3", "GPU0"), or else those that they are.
ProcessRanks rank_by_pids(const std::set<std::string>& pids) {
  ProcessRanks ranks;
  for (const std::string& pid : pids)
    if (const auto found = find_rank_number(pid); found && (found->is_rank || found->is_device))
      ranks[pid] = {found->number, found->is_rank, found->is_device};
  if (ranks.size() == pids.size() && have_distinct_ranks(ranks)) return ranks;
  ranks.clear();
  for (const std::string& pid : pids) ranks[pid] = {parse_rank(pid)};
  return ranks;
}

}  // namespace

std::map<std::string, ProcessRank> rank_processes(const ChromeEvents& events,
                                                  const std::set<std::string>& pids) {
  ProcessRanks ranks = rank_by_names(events, pids);
  if (have_distinct_ranks(ranks)) return ranks;
  ranks = rank_by_places(events, pids);
  return ranks.empty() ? rank_by_pids(pids) : ranks;
}

std::vector<std::string> order_processes(const std::map<std::string, ProcessRank>& ranks) {
  std::vector<std::tuple<bool, std::int32_t, std::string>> places;
  for (const auto& [pid, rank] : ranks)
    places.emplace_back(!rank.rank.has_value(), rank.rank.value_or(0), pid);
  std::sort(places.begin(), places.end());
  std::vector<std::string> pids;
  for (auto& [_, number, pid] : places) pids.push_back(std::move(pid));
  return pids;
}

}  // namespace bubblescope::traces

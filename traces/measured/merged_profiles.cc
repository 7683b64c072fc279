// Divides events by their processes.
#include "traces/measured/merged_profiles.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include "sim/ir/error.h"
#include "traces/measured/chrome_processes.h"

namespace bubblescope::traces {

namespace {

/// Moves the events of a process out of those of all.
template <class Event>
std::vector<Event> take_from(std::vector<Event>& events, const ChromeEvents& all,
                             const std::string& pid) {
  const auto first = std::stable_partition(events.begin(), events.end(), [&](const Event& event) {
    return all.threads[event.thread].process != pid;
  });
  std::vector<Event> taken(std::make_move_iterator(first), std::make_move_iterator(events.end()));
  events.erase(first, events.end());
  return taken;
}

}  // namespace

std::vector<ChromeEvents> separate_profiles(ChromeEvents events, const std::string& file) {
  std::vector<ChromeEvents> profiles;
  const std::set<std::string> pids = events.profiled_processes;
  if (pids.size() < 2) {
    profiles.push_back(std::move(events));
    return profiles;
  }
  const std::map<std::string, ProcessRank> ranks = rank_processes(events, pids);
  for (const std::string& pid : order_processes(ranks)) {
    ChromeEvents& own = profiles.emplace_back();
    own.is_kineto = true;
    own.threads = events.threads;
    own.host = events.host;
    own.left_out = events.left_out;
    own.names = events.names;
    own.numbers = events.numbers_by_process[pid];
    own.negative_durations = events.negative_by_process[pid];
    const ProcessRank& rank = ranks.at(pid);
    if (rank.is_stated) own.distributed_rank = rank.rank;
    own.profiled = take_from(events.profiled, events, pid);
    own.slices = take_from(events.slices, events, pid);
    own.parts = take_from(events.parts, events, pid);
  }
  if (!events.profiled.empty() || !events.slices.empty())
    throw Error(fmt::format(
        "{}: it holds the profiles of {} processes, merged into one, and nothing says which of "
        "them ran the work of a device; give the {} files that the profiler wrote",
        file, pids.size(), pids.size()));
  return profiles;
}

}  // namespace bubblescope::traces

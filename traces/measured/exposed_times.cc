// Compares the times of collectives over ranks.
#include "traces/measured/exposed_times.h"

#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <utility>

#include "traces/measured/collective_names.h"

namespace bubblescope::traces {

namespace {

/// The shortest time that any rank spends in each collective of each step.
std::map<std::pair<std::int64_t, std::string>, Nanos> shortest_times(
    const std::vector<ObservedActivity>& activities) {
  std::map<std::tuple<std::int64_t, std::string, std::int32_t, std::int32_t>, Nanos> of_rank;
  for (const ObservedActivity& activity : activities)
    if (!activity.is_whole_step && is_named_like_collective(activity.name))
      of_rank[{activity.step, activity.name, activity.replica, activity.recorder}] +=
          activity.end - activity.start;
  std::map<std::pair<std::int64_t, std::string>, Nanos> shortest;
  for (const auto& [key, time] : of_rank) {
    const auto [found, is_new] =
        shortest.emplace(std::pair(std::get<0>(key), std::get<1>(key)), time);
    if (!is_new) found->second = std::min(found->second, time);
  }
  return shortest;
}

}  // namespace

std::map<std::string, std::vector<Nanos>> find_exposed_times(
    const std::vector<ObservedActivity>& activities, const std::vector<WholeStep>& steps) {
  const auto shortest = shortest_times(activities);
  std::map<std::string, std::vector<Nanos>> exposed;
  for (const WholeStep& step : steps)
    for (const auto& [name, outside] : step.outside) {
      const auto own = shortest.find({step.step, name});
      if (own != shortest.end()) exposed[name].push_back(std::min(outside, own->second));
    }
  for (auto& [_, times] : exposed) times.resize(steps.size(), 0);  // it does not run in the others
  return exposed;
}

}  // namespace bubblescope::traces

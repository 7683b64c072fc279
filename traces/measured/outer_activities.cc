// Knows the collectives of Megatron's step by name.
#include "traces/measured/outer_activities.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <tuple>

namespace bubblescope::traces {

namespace {

struct KnownActivity {
  std::string_view name;
  ActivityGroup group = ActivityGroup::kAlone;
};

/// Sums over the tensor group run on the only one of its ranks that is shown.
constexpr std::array<KnownActivity, 8> kCollectives{
    {{"params-all-gather", ActivityGroup::kReplicas},
     {"grads-reduce-scatter", ActivityGroup::kReplicas},
     {"grads-all-reduce", ActivityGroup::kReplicas},
     {"all-grads-sync", ActivityGroup::kReplicas},
     {"separate-grads-all-reduce", ActivityGroup::kReplicas},
     {"embedding-grads-all-reduce", ActivityGroup::kPipeline},
     {"layernorm-grads-all-reduce", ActivityGroup::kAlone},
     {"optimizer-clip-main-grad", ActivityGroup::kJob}}};

const KnownActivity* find_collective(std::string_view name) {
  const auto found =
      std::find_if(kCollectives.begin(), kCollectives.end(),
                   [&](const KnownActivity& known) { return name.starts_with(known.name); });
  return found == kCollectives.end() ? nullptr : &*found;
}

OuterActivity describe(const ObservedActivity& activity, std::int32_t rank, std::int32_t ranks) {
  OuterActivity outer{activity.name, activity.replica, rank};
  if (const KnownActivity* const known = find_collective(activity.name)) {
    outer.group = known->group;
    outer.communicates = true;
  }
  if (activity.chunk) outer.stage = *activity.chunk * ranks + rank;
  outer.start = activity.start;
  outer.end = activity.end;
  return outer;
}

/// How often each worker runs each activity.
std::map<std::tuple<std::int32_t, std::int32_t, std::string>, std::int32_t> count_activities(
    const std::vector<OuterActivity>& activities) {
  std::map<std::tuple<std::int32_t, std::int32_t, std::string>, std::int32_t> counts;
  for (const OuterActivity& activity : activities)
    ++counts[{activity.replica, activity.rank, activity.name}];
  return counts;
}

}  // namespace

OuterActivities find_outer_activities(const std::vector<ObservedActivity>& activities,
                                      const PipelineExtents& pipelines,
                                      const std::vector<std::int32_t>& rank_of_recorder) {
  if (std::none_of(activities.begin(), activities.end(), [](const ObservedActivity& activity) {
        return !activity.is_whole_step && find_collective(activity.name);
      }))
    return {};
  const std::int32_t ranks =
      1 + *std::max_element(rank_of_recorder.begin(), rank_of_recorder.end());
  OuterActivities found;
  for (const auto& [key, _] : pipelines) found[key.second];
  for (const ObservedActivity& activity : activities)
    if (!activity.is_whole_step && pipelines.contains({activity.replica, activity.step}))
      found[activity.step].push_back(
          describe(activity, rank_of_recorder[static_cast<std::size_t>(activity.recorder)], ranks));
  const auto usual = count_activities(found.begin()->second);
  for (const auto& [_, of_step] : found)
    if (count_activities(of_step) != usual) return {};
  return found;
}

}  // namespace bubblescope::traces

// Knows the collectives of Megatron's step by name.
#include "traces/measured/outer_works.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>

namespace bubblescope::traces {

namespace {

struct KnownWork {
  std::string_view name;
  WorkGroup group = WorkGroup::kAlone;
};

/// Sums over the tensor group run on the only one of its ranks that is shown.
constexpr std::array<KnownWork, 8> kCollectives{
    {{"params-all-gather", WorkGroup::kReplicas},
     {"grads-reduce-scatter", WorkGroup::kReplicas},
     {"grads-all-reduce", WorkGroup::kReplicas},
     {"all-grads-sync", WorkGroup::kReplicas},
     {"separate-grads-all-reduce", WorkGroup::kReplicas},
     {"embedding-grads-all-reduce", WorkGroup::kPipeline},
     {"layernorm-grads-all-reduce", WorkGroup::kAlone},
     {"optimizer-clip-main-grad", WorkGroup::kJob}}};

const KnownWork* find_collective(std::string_view name) {
  const auto found =
      std::find_if(kCollectives.begin(), kCollectives.end(),
                   [&](const KnownWork& known) { return name.starts_with(known.name); });
  return found == kCollectives.end() ? nullptr : &*found;
}

OuterWork describe(const ObservedWork& work, std::int32_t rank, std::int32_t ranks) {
  OuterWork outer{work.name, work.replica, rank};
  if (const KnownWork* const known = find_collective(work.name)) {
    outer.group = known->group;
    outer.communicates = true;
  }
  if (work.chunk) outer.stage = *work.chunk * ranks + rank;
  outer.start = work.start;
  outer.end = work.end;
  return outer;
}

/// How often each worker runs each work.
std::map<std::tuple<std::int32_t, std::int32_t, std::string>, std::int32_t> count_works(
    const std::vector<OuterWork>& works) {
  std::map<std::tuple<std::int32_t, std::int32_t, std::string>, std::int32_t> counts;
  for (const OuterWork& work : works) ++counts[{work.replica, work.rank, work.name}];
  return counts;
}

}  // namespace

OuterWorks find_outer_works(const std::vector<ObservedWork>& works, const StepExtents& pipelines,
                            const std::vector<std::int32_t>& rank_of_recorder) {
  if (std::none_of(works.begin(), works.end(), [](const ObservedWork& work) {
        return !work.is_whole_step && find_collective(work.name);
      }))
    return {};
  const std::int32_t ranks =
      1 + *std::max_element(rank_of_recorder.begin(), rank_of_recorder.end());
  OuterWorks found;
  for (const auto& [key, _] : pipelines) found[key.second];
  for (const ObservedWork& work : works)
    if (!work.is_whole_step && pipelines.contains({work.replica, work.step}))
      found[work.step].push_back(
          describe(work, rank_of_recorder[static_cast<std::size_t>(work.recorder)], ranks));
  const auto usual = count_works(found.begin()->second);
  for (const auto& [_, of_step] : found)
    if (count_works(of_step) != usual) return {};
  return found;
}

}  // namespace bubblescope::traces

// Asks the rules of each profile whether they refuse the schedule.
#include "traces/plans/runs_in.h"

#include "sim/model/schedule_def.h"
#include "sim/model/schedule_refusal.h"

namespace bubblescope::traces {

bool runs_in(const Configuration& configuration, const std::string& framework) {
  const ScheduleDef* def = Registry<ScheduleDef>::instance().find(configuration.schedule);
  const Named<Profile>* profile = find_named(kProfiles, framework);
  if (def == nullptr || profile == nullptr) return false;
  const bool has_pytorch_option = configuration.send_budget > 0 || configuration.lookahead;
  if (has_pytorch_option && resolve_profile(profile->choice) != Profile::kPytorch) return false;
  const bool divides_recomputation =
      !configuration.modules.empty() || configuration.recomputed != RecomputedLayers{};
  if (divides_recomputation && profile->choice != Profile::kMegatron) return false;
  ScheduleRequest request;
  request.shape = configuration.shape;
  if (configuration.moe_overlap) request.moe_overlap = MoeOverlap::kTurns;
  request.profile = profile->choice;
  return refuse_schedule(*def, request).empty();
}

std::vector<std::string> known_frameworks() {
  std::vector<std::string> names;
  for (const Named<Profile>& profile : kProfiles)
    if (resolve_profile(profile.choice) == profile.choice) names.emplace_back(profile.name);
  return names;
}

std::vector<std::string> frameworks_of(const Configuration& configuration) {
  std::vector<std::string> names = known_frameworks();
  std::erase_if(names, [&](const std::string& name) { return !runs_in(configuration, name); });
  return names;
}

}  // namespace bubblescope::traces

// PipeDream with vertical sync: a micro-batch uses the same version of the weights on all stages,
// the newest one when it entered the first stage. Narayanan et al., "PipeDream: Generalized
// Pipeline Parallelism for DNN Training", 2019.
#include "schedules/round_robin.h"
#include "schedules/weight_versions.h"

namespace bubblescope::schedules {
namespace {

/// The delay is that of the first stage, in updates: p-1 without replicas. Updates of different
/// stages must have the same size, so all stages need the same number of replicas.
std::vector<std::string> refuse_pipedream_vertical(const ScheduleRequest& request) {
  std::vector<std::string> reasons = refuse_round_robin(request);
  const std::vector<std::int32_t> replicas = replicas_of(request);
  for (const std::int32_t count : replicas)
    if (count != replicas.front()) {
      reasons.push_back(
          "stages of different `replicas` have no versions in common; give equal ones");
      break;
    }
  return reasons;
}

Schedule build_pipedream_vertical(const ScheduleRequest& request) {
  Schedule schedule = build_round_robin(request);
  const UpdateRule rule{schedule.replicas(0), count_round_robin_warmup(request, 0)};
  for (const RankOrder& ops : schedule.order)
    schedule.weights.push_back(assign_weight_versions(ops, rule));
  return schedule;
}

const ScheduleRegistrar pipedream_vertical_registrar{[] {
  return ScheduleDef{
      .name = "pipedream-vertical",
      .aliases = {"vertical-sync"},
      .summary = "pipedream with one version per micro-batch: p versions on every stage",
      .source = "Narayanan et al. 2019",
      .implied_chunks = 1,
      .replicates_stages = true,
      .limits_in_flight = true,
      .flushes = false,
      .refuse = refuse_pipedream_vertical,
      .build = build_pipedream_vertical,
      .claims = claim_round_robin,
  };
}};

}  // namespace
}  // namespace bubblescope::schedules

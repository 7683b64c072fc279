// PipeDream: 1F1B without flushes. Every backward ends with an update, and micro-batches in flight
// keep the weights that they began with (weight stashing). Narayanan et al., "PipeDream:
// Generalized Pipeline Parallelism for DNN Training", 2019.
#include "schedules/round_robin.h"
#include "schedules/weight_versions.h"

namespace bubblescope::schedules {
namespace {

/// A micro-batch reads the newest weights when it enters a stage. Its gradient is then as many
/// updates late as the stage has warm-up forwards. Replicas update together; reducing their
/// gradients takes no time unless the optimizer is OptimizerMode::kLocal.
Schedule build_pipedream(const ScheduleRequest& request) {
  Schedule schedule = build_round_robin(request);
  for (std::int32_t stage = 0; stage < schedule.stages(); ++stage)
    for (std::int32_t replica = 0; replica < schedule.replicas(stage); ++replica) {
      const auto rank = static_cast<std::size_t>(schedule.rank_of_stage[stage] + replica);
      schedule.weights.push_back(assign_weight_versions(
          schedule.order[rank],
          {schedule.replicas(stage), count_round_robin_warmup(request, stage)}));
    }
  return schedule;
}

const ScheduleRegistrar pipedream_registrar{[] {
  return ScheduleDef{
      .name = "pipedream",
      .summary = "1F1B without flushes: no bubble once full, p versions of the weights",
      .source = "Narayanan et al. 2019",
      .implied_chunks = 1,
      .replicates_stages = true,
      .limits_in_flight = true,
      .flushes = false,
      .refuse = refuse_round_robin,
      .build = build_pipedream,
      .claims = claim_round_robin,
  };
}};

}  // namespace
}  // namespace bubblescope::schedules

// GPipe: every forward, then every backward.
// Huang et al., "GPipe: Efficient Training of Giant Neural Networks using Pipeline Parallelism",
// 2019.
#include "schedules/chunk_cost.h"
#include "schedules/rank_order.h"

namespace bubblescope::schedules {
namespace {

Schedule build_gpipe(const ScheduleRequest& request) {
  const Shape& shape = request.shape;
  Schedule schedule;
  schedule.rank_of_stage = loop_placement(shape.ranks, 1);
  for (std::int32_t rank = 0; rank < shape.ranks; ++rank)
    schedule.order.push_back(
        alternate(visits_of_stage(rank, shape.microbatches), shape.microbatches));
  return schedule;
}

/// The claim is T = (m+p-1) (F+B) + 2 (p-1) c: messages cost time only in the first forward and the
/// last backward.
Claims claim_gpipe(const ScheduleRequest& request) {
  const Nanos ranks = request.shape.ranks;
  const Nanos microbatches = request.shape.microbatches;
  const ChunkCost cost = *chunk_cost(request);
  Claims claims;
  claims.makespan =
      (microbatches + ranks - 1) * (cost.forward + cost.backward) + 2 * (ranks - 1) * cost.message;
  claims.max_span = claims.makespan;
  claims.peak_chunks.assign(request.shape.ranks, microbatches);
  return claims;
}

const ScheduleRegistrar gpipe_registrar{[] {
  return ScheduleDef{
      .name = "gpipe",
      .aliases = {"GPipe"},
      .summary = "all forwards, then all backwards: simple, and holds every micro-batch",
      .source = "Huang et al. 2019",
      .implied_chunks = 1,
      .profiles = {Profile::kPytorch},
      .build = build_gpipe,
      .claims = claim_gpipe,
  };
}};

}  // namespace
}  // namespace bubblescope::schedules

// Naive model parallelism: one micro-batch at a time goes down all ranks and back up.
#include "schedules/chunk_cost.h"
#include "schedules/rank_order.h"

namespace bubblescope::schedules {
namespace {

Schedule build_naive(const ScheduleRequest& request) {
  Schedule schedule;
  schedule.rank_of_stage = loop_placement(request.shape.ranks, 1);
  for (std::int32_t rank = 0; rank < request.shape.ranks; ++rank)
    schedule.order.push_back(alternate(visits_of_stage(rank, request.shape.microbatches), 0));
  return schedule;
}

/// T = m (p (F + B) + 2 (p-1) c): nothing overlaps, not even messages.
Claims claim_naive(const ScheduleRequest& request) {
  const Nanos ranks = request.shape.ranks;
  const ChunkCost cost = *chunk_cost(request);
  Claims claims;
  claims.makespan = request.shape.microbatches *
                    (ranks * (cost.forward + cost.backward) + 2 * (ranks - 1) * cost.message);
  claims.max_span = claims.makespan;
  claims.peak_chunks.assign(request.shape.ranks, 1);
  return claims;
}

const ScheduleRegistrar naive_registrar{[] {
  return ScheduleDef{
      .name = "naive",
      .summary = "one micro-batch at a time: the next starts when the previous one is complete",
      .source = "model parallelism without a pipeline",
      .implied_chunks = 1,
      .build = build_naive,
      .claims = claim_naive,
  };
}};

}  // namespace
}  // namespace bubblescope::schedules

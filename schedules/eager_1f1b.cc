// Eager 1F1B: almost twice the warm-up of 1F1B, so that forward messages hide behind compute.
// Zhuang et al., "On Optimizing the Communication of Model Parallelism" (Alpa's "overlap friendly"
// schedule), 2022; Fan et al., "DAPPLE" (policy PB), 2021.
#include <algorithm>

#include "schedules/chunk_cost.h"
#include "schedules/rank_order.h"

namespace bubblescope::schedules {
namespace {

Schedule build_eager_1f1b(const ScheduleRequest& request) {
  const Shape& shape = request.shape;
  Schedule schedule;
  schedule.rank_of_stage = loop_placement(shape.ranks, 1);
  for (std::int32_t rank = 0; rank < shape.ranks; ++rank)
    schedule.order.push_back(
        alternate(visits_of_stage(rank, shape.microbatches), 2 * (shape.ranks - 1 - rank)));
  return schedule;
}

/// The claim is T = (m+p-1) (F + B) + 2 (p-1) c + [2c - F - B]+ floor((m-1) (p-1) / (2p-1)).
/// With 2p-1 micro-batches in flight, only messages longer than half a turn cost time in every
/// round.
Claims claim_eager_1f1b(const ScheduleRequest& request) {
  const Nanos ranks = request.shape.ranks;
  const Nanos microbatches = request.shape.microbatches;
  const ChunkCost cost = *chunk_cost(request);
  const Nanos turn = cost.forward + cost.backward;
  const Nanos late_rounds = (microbatches - 1) * (ranks - 1) / (2 * ranks - 1);
  Claims claims;
  claims.makespan = (microbatches + ranks - 1) * turn + 2 * (ranks - 1) * cost.message +
                    late_rounds * clamp_to_zero(2 * cost.message - turn);
  claims.max_span = claims.makespan;
  for (Nanos rank = 0; rank < ranks; ++rank)
    claims.peak_chunks.push_back(std::min(microbatches, 2 * (ranks - rank) - 1));
  return claims;
}

const ScheduleRegistrar eager_1f1b_registrar{[] {
  return ScheduleDef{
      .name = "eager-1f1b",
      .summary = "1F1B with twice the warm-up: hides the messages, holds up to 2p-1 micro-batches",
      .source = "Zhuang et al. 2022 (Alpa), Fan et al. 2021 (DAPPLE PB)",
      .implied_chunks = 1,
      .build = build_eager_1f1b,
      .claims = claim_eager_1f1b,
  };
}};

}  // namespace
}  // namespace bubblescope::schedules

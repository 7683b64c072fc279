// Hanayo: micro-batches run down and up the ranks in W waves, as in Chimera folded onto one copy of
// the weights. Liu et al., "Hanayo: Harnessing Wave-like Pipeline Parallelism for Enhanced Large
// Model Training Efficiency", 2023. The paper draws its schedules; these slots are one way to get
// them, with a bubble of their own.
#include "schedules/chunk_cost.h"
#include "schedules/slot_order.h"

namespace bubblescope {
namespace {

Schedule build(const ScheduleRequest& request) {
  const Shape& shape = request.shape;
  Schedule schedule;
  schedule.rank_of_stage = zigzag_placement(shape.ranks, shape.chunks);
  std::vector<SlotOrder> orders(
      shape.ranks, SlotOrder({.stages = schedule.stages(), .group_size = shape.ranks}));
  for (std::int32_t stage = 0; stage < schedule.stages(); ++stage)
    orders[schedule.rank_of_stage[stage]].add({stage, 0}, stage, shape.microbatches);
  for (SlotOrder& order : orders) schedule.order.push_back(std::move(order).take());
  return schedule;
}

/// With F and B of a chunk, W waves are v = 2W chunks. For m = kp, F <= B, no time for messages:
///   T = m v (F + B) + 2 (p-1) (F + k (B - F))
Claims claim(const ScheduleRequest& request) {
  const Shape& shape = request.shape;
  const std::int32_t groups = shape.microbatches / shape.ranks;
  Claims claims;
  if (shape.microbatches % shape.ranks != 0) return claims;
  for (std::int32_t rank = 0; rank < shape.ranks; ++rank)
    claims.peak_chunks.push_back(shape.ranks * (shape.chunks - 1) + 1 + rank);
  const std::optional<ChunkCost> cost = chunk_cost(request);
  if (!cost || cost->forward > cost->backward || cost->message > 0) return claims;
  const Nanos visits = Nanos{shape.microbatches} * shape.chunks;
  claims.makespan =
      visits * (cost->forward + cost->backward) +
      2 * (shape.ranks - 1) * (cost->forward + groups * (cost->backward - cost->forward));
  claims.max_span = claims.makespan;
  return claims;
}

const ScheduleRegistrar registrar{{
    .name = "hanayo",
    .summary = "W waves down and up the ranks, two chunks each (--vpp 2W): a W-th of the bubble",
    .source = "Liu et al. 2023",
    .implied_chunks = 2,
    .repeats_chunks = true,
    .build = build,
    .claims = claim,
}};

}  // namespace
}  // namespace bubblescope

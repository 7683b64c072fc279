// Hanayo: micro-batches run down and up the ranks in W waves, like Chimera folded onto one copy of
// the weights. Liu et al., "Hanayo: Harnessing Wave-like Pipeline Parallelism for Enhanced Large
// Model Training Efficiency", 2023. The paper only draws its schedules; these slots are one way to
// construct them, with their own bubble.
#include <algorithm>

#include "schedules/chunk_cost.h"
#include "schedules/slot_order.h"

namespace bubblescope::schedules {
namespace {

Schedule build_hanayo(const ScheduleRequest& request) {
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

/// With F and B of a chunk, W waves are v = 2W chunks. For m = kp and F <= B, with messages for
/// p >= 2 and c <= F, B - F:
///   T = m v (F + B) + 2 (p-1) (F + k (B - F)) + 2 (p-1 + k (v (p-1) - 1)) c
Claims claim_hanayo(const ScheduleRequest& request) {
  const Shape& shape = request.shape;
  const Nanos ranks = shape.ranks;
  const Nanos groups = shape.microbatches / ranks;
  Claims claims;
  if (shape.microbatches % shape.ranks != 0) return claims;
  for (std::int32_t rank = 0; rank < shape.ranks; ++rank)
    claims.peak_chunks.push_back(shape.ranks * (shape.chunks - 1) + 1 + rank);
  const std::optional<ChunkCost> cost = chunk_cost(request);
  if (!cost) return claims;
  const auto [forward, backward, input_grad, weight_grad, message] = *cost;
  const Nanos longer = backward - forward;
  if (longer < 0 || (message > 0 && message > std::min(forward, longer))) return claims;
  claims.makespan = Nanos{shape.microbatches} * shape.chunks * (forward + backward) +
                    2 * (ranks - 1) * (forward + groups * longer) +
                    2 * (ranks - 1 + groups * (shape.chunks * (ranks - 1) - 1)) * message;
  claims.max_span = claims.makespan;
  return claims;
}

const ScheduleRegistrar hanayo_registrar{[] {
  return ScheduleDef{
      .name = "hanayo",
      .summary =
          "W waves down and up the ranks, two chunks each (`vpp` 2W): with b from f to 2f at most "
          "1F1B's bubble for m up to p, a W-th of it or less for m = p and 2p, and maybe more for "
          "others",
      .source = "Liu et al. 2023",
      .implied_chunks = 2,
      .repeats_chunks = true,
      .is_at_most_1f1b = has_few_groups,
      .build = build_hanayo,
      .claims = claim_hanayo,
  };
}};

}  // namespace
}  // namespace bubblescope::schedules

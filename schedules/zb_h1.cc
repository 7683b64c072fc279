// ZB-H1: 1F1B with delayed weight gradients, which fill two thirds of its bubble. Qi et al., "Zero
// Bubble Pipeline Parallelism", 2024, section 2.3.
#include "schedules/zero_bubble.h"

namespace bubblescope::schedules {
namespace {

constexpr std::int32_t kHeight = 1;

/// T = m (F + I + W) + (p-1) max(F + 3c, I + 2c + [F + 2c - W]+); see compute_height_one_bubble.
Claims claim_zb_h1(const ScheduleRequest& request) {
  const Shape& shape = request.shape;
  const ChunkCost cost = *chunk_cost(request);
  Claims claims;
  claims.peak_chunks = count_zero_bubble_peaks(shape, kHeight);
  if (const std::optional<RankBubble> bubble = compute_height_one_bubble(shape, cost)) {
    const Nanos work = shape.microbatches * (cost.forward + cost.input_grad + cost.weight_grad);
    claims.makespan = work + (shape.ranks - 1) * bubble->makespan;
    claims.max_span = work + (shape.ranks - 1) * bubble->span;
  }
  return claims;
}

const ScheduleRegistrar zb_h1_registrar{[] {
  return ScheduleDef{
      .name = "zb-h1",
      .summary =
          "1F1B with split backwards: a third of the bubble, the memory of 1F1B's first rank",
      .source = "Qi et al. 2024",
      .implied_chunks = 1,
      .build = [](const ScheduleRequest& request) { return build_zero_bubble(request, kHeight); },
      .claims = claim_zb_h1,
  };
}};

}  // namespace
}  // namespace bubblescope::schedules

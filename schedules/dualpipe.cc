// DualPipe: micro-batches enter at both ends, and forwards in one direction overlap backwards in
// the other; every rank holds the weights of two stages. DeepSeek-AI, "DeepSeek-V3 Technical
// Report", 2024.
#include "schedules/dual_phases.h"

namespace bubblescope::schedules {
namespace {

std::vector<std::string> refuse_dualpipe(const ScheduleRequest& request) {
  const Shape& shape = request.shape;
  std::vector<std::string> reasons;
  if (shape.ranks % 2 != 0)
    reasons.push_back("both directions meet in the middle: `pp` must be even");
  if (shape.microbatches % 2 != 0)
    reasons.push_back(
        "half of the micro-batches go in each direction: `microbatches` must be even");
  if (shape.microbatches < 2 * shape.ranks)
    reasons.push_back(
        "each direction needs a micro-batch per rank: `microbatches` must be at least 2 * `pp` = " +
        std::to_string(2 * shape.ranks));
  return reasons;
}

Schedule build_dualpipe(const ScheduleRequest& request) {
  const Shape& shape = request.shape;
  Schedule schedule;
  schedule.pipelines = 2;
  schedule.rank_of_stage = bidirectional_placement(shape.ranks);
  for (std::int32_t rank = 0; rank < shape.ranks; ++rank) {
    const std::int32_t mirrored = shape.ranks - 1 - rank;
    const Stream down{rank, 0};
    const Stream up{shape.ranks + mirrored, shape.microbatches / 2};
    DualRank half{{down, up}, shape.microbatches / 2, shape.ranks / 2, rank};
    if (mirrored < rank) half = {{up, down}, half.microbatches, half.depth, mirrored};
    schedule.order.push_back(make_dual_order(half));
  }
  return schedule;
}

/// Every rank holds p+1 chunks. For T see compute_dual_bubble.
Claims claim_dualpipe(const ScheduleRequest& request) {
  const Shape& shape = request.shape;
  Claims claims;
  claims.peak_chunks.assign(shape.ranks, shape.ranks + 1);
  const ChunkCost cost = *chunk_cost(request);
  const std::optional<Nanos> bubble = compute_dual_bubble(cost, shape.ranks / 2);
  if (!bubble) return claims;
  claims.max_span = shape.microbatches * (cost.forward + cost.backward) + *bubble;
  claims.makespan = claims.max_span;
  return claims;
}

const ScheduleRegistrar dualpipe_registrar{[] {
  return ScheduleDef{
      .name = "dualpipe",
      .summary = "both directions at once; forwards of one overlap backwards of the other",
      .source = "DeepSeek-AI 2024 (DeepSeek-V3)",
      .implied_chunks = 1,
      .profiles = {Profile::kDeepseek},
      .refuse = refuse_dualpipe,
      .build = build_dualpipe,
      .claims = claim_dualpipe,
  };
}};

}  // namespace
}  // namespace bubblescope::schedules

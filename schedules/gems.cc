// GEMS: two pipelines in opposite directions that take turns, for models that leave a rank memory
// for the activations of only one micro-batch. Jain et al., "GEMS: GPU-Enabled Memory-Aware
// Model-Parallelism System for Distributed DNN Training", 2020.
#include "schedules/chunk_cost.h"

namespace bubblescope::schedules {
namespace {

/// The i-th micro-batch goes down if i is even, up if it is odd: its forward follows the backward
/// of the previous one through the ranks.
Schedule build_gems(const ScheduleRequest& request) {
  const Shape& shape = request.shape;
  const std::int32_t first_upward = (shape.microbatches + 1) / 2;
  Schedule schedule;
  schedule.pipelines = 2;
  schedule.rank_of_stage = bidirectional_placement(shape.ranks);
  for (std::int32_t rank = 0; rank < shape.ranks; ++rank) {
    RankOrder& ops = schedule.order.emplace_back();
    for (std::int32_t at = 0; at < shape.microbatches; ++at) {
      const bool upward = at % 2 == 1;
      const std::int32_t stage = upward ? 2 * shape.ranks - 1 - rank : rank;
      const std::int32_t microbatch = upward ? first_upward + at / 2 : at / 2;
      ops.push_back(forward(stage, microbatch));
      ops.push_back(backward(stage, microbatch));
    }
  }
  return schedule;
}

/// For F <= B: T = m (p B + F) + (p-1) F + (m+1) (p-1) c The last micro-batch ends on the rank
/// where it began. If it went up, that rank has waited (p-1) (F+c) to start, and its span is
/// shorter by that time.
Claims claim_gems(const ScheduleRequest& request) {
  const Nanos ranks = request.shape.ranks;
  const Nanos microbatches = request.shape.microbatches;
  const ChunkCost cost = *chunk_cost(request);
  Claims claims;
  claims.peak_chunks.assign(request.shape.ranks, 1);
  if (cost.forward > cost.backward) return claims;
  const Nanos way = (ranks - 1) * (cost.forward + cost.message);
  claims.makespan =
      microbatches * (ranks * cost.backward + cost.forward + (ranks - 1) * cost.message) + way;
  claims.max_span = *claims.makespan - (microbatches % 2 == 0 ? way : 0);
  return claims;
}

const ScheduleRegistrar gems_registrar{[] {
  return ScheduleDef{
      .name = "gems",
      .summary = "two pipelines in turn: holds one micro-batch, for when nothing else fits",
      .source = "Jain et al. 2020",
      .implied_chunks = 1,
      .build = build_gems,
      .claims = claim_gems,
  };
}};

}  // namespace
}  // namespace bubblescope::schedules

// ZB-V: two chunks per rank in a V, so that the rank that starts a micro-batch also ends it.
// Qi et al., "Zero Bubble Pipeline Parallelism", 2024, section 6; in the phases of PyTorch's
// ScheduleZBVZeroBubble.
#include <algorithm>

#include "schedules/chunk_cost.h"
#include "schedules/pytorch_cells.h"
#include "schedules/two_streams.h"

namespace bubblescope::schedules {
namespace {

/// The phases are for at least n = 2p-1 micro-batches; if there are fewer, the cells of the missing
/// ones are idle.
RankOrder rank_cells(const Shape& shape, std::int32_t rank) {
  const std::int32_t n = std::max(2 * shape.ranks - 1, shape.microbatches);
  const std::int32_t below = shape.ranks - rank;
  const std::int64_t expected_ops = std::int64_t{6} * n + shape.ranks;
  TwoStreamOrder order({Stream{rank, 0}, Stream{2 * shape.ranks - 1 - rank, 0}}, expected_ops);
  order.repeat(2 * below - 1, "F0");
  order.repeat(rank, "F1 F0");
  order.repeat(below, "F1 I1 W1");
  order.repeat(n - shape.ranks, "F0 I0 W0 F1 I1 W1");
  order.repeat(rank, "I0 I1");
  order.repeat(below, "I0 W0");
  order.repeat(rank, "W1");
  order.repeat(rank, "W0");
  RankOrder cells = std::move(order).take();
  std::erase_if(cells, [&](const Op& op) { return op.microbatch >= n; });
  if (shape.microbatches == n) return cells;
  const auto is_missing = [&](const Op& op) { return op.microbatch >= shape.microbatches; };
  std::replace_if(cells.begin(), cells.end(), is_missing, kIdleCell);
  return cells;
}

Schedule build_zb_v(const ScheduleRequest& request) {
  Schedule schedule;
  schedule.rank_of_stage = zigzag_placement(request.shape.ranks, 2);
  for (std::int32_t rank = 0; rank < request.shape.ranks; ++rank) {
    RankOrder cells = rank_cells(request.shape, rank);
    // PyTorch starts each rank one step later.
    if (request.profile == Profile::kPytorch)
      schedule.posted.push_back(with_idle_cells(cells, {.lead = rank}));
    std::erase(cells, kIdleCell);
    schedule.order.emplace_back(cells.begin(), cells.end());  // no larger than it needs to be
  }
  return schedule;
}

/// If F = I = W >= 2c:
///   T = max(4 (m+p) - 2, 6m + p-1) F + (5p-7) c,  span = 6m F + (6p-8) c
/// the span for m >= 2p-1 only, the makespan for fewer micro-batches only without messages.
Claims claim_zb_v(const ScheduleRequest& request) {
  const Nanos ranks = request.shape.ranks;
  const Nanos microbatches = request.shape.microbatches;
  Claims claims;
  for (Nanos rank = 0; rank < ranks; ++rank)
    claims.peak_chunks.push_back(std::min({2 * microbatches, 2 * ranks, microbatches + 1 + rank}));
  const std::optional<ChunkCost> cost = chunk_cost(request);
  if (!cost) return claims;
  const auto [unit, backward, input_grad, weight_grad, message] = *cost;
  const bool full = microbatches >= 2 * ranks - 1;
  if (unit != input_grad || unit != weight_grad || 2 * message > unit) return claims;
  if (!full && message > 0) return claims;
  claims.makespan = std::max(4 * (microbatches + ranks) - 2, 6 * microbatches + ranks - 1) * unit +
                    (5 * ranks - 7) * message;
  if (full) claims.max_span = 6 * microbatches * unit + (6 * ranks - 8) * message;
  return claims;
}

const ScheduleRegistrar zb_v_registrar{[] {
  return ScheduleDef{
      .name = "zb-v",
      .aliases = {"ZBVZeroBubble"},
      .summary = "a V of two chunks per rank: span rate 0 when F = I = W, with 1F1B's memory",
      .source = "Qi et al. 2024, in PyTorch's phases",
      .implied_chunks = 2,
      .profiles = {Profile::kPytorch},
      .other_orders = {Profile::kColossalai},  // chosen by a heuristic
      .build = build_zb_v,
      .claims = claim_zb_v,
  };
}};

}  // namespace
}  // namespace bubblescope::schedules

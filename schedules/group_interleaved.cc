// Group-interleaved 1F1B: interleaved with half the warm-up, which releases activations a
// micro-batch earlier, and with each W directly after its I. With offload it is PipeOffload. Wan
// et al., "PipeOffload: Improving Scalability of Pipeline Parallelism with Memory Optimization",
// 2025.
#include <algorithm>

#include "schedules/chunk_cost.h"
#include "schedules/virtual_stages.h"

namespace bubblescope::schedules {
namespace {

/// Gradients return one step per rank, because they do not wait for W.
constexpr std::int32_t kGroupSteps = 1;

Schedule build_group_interleaved(const ScheduleRequest& request) {
  const Shape& shape = request.shape;
  Schedule schedule;
  schedule.rank_of_stage = loop_placement(shape.ranks, shape.chunks);
  const std::int32_t group_size = find_groups(request).size;
  for (std::int32_t rank = 0; rank < shape.ranks; ++rank)
    schedule.order.push_back(alternate_split(make_virtual_visits(shape, group_size, rank),
                                             count_virtual_warmup(request, rank, kGroupSteps), 0));
  return schedule;
}

/// With F, I and W of a chunk, and no time for messages:
///   T = mv (F + I + W) + (p-1) (F + I)
/// if groups fill the loop and F = I = W. Rank r holds (v-1) g + p - r chunks.
Claims claim_group_interleaved(const ScheduleRequest& request) {
  const Shape& shape = request.shape;
  const Nanos visits = Nanos{shape.microbatches} * shape.chunks;
  Claims claims;
  for (std::int32_t rank = 0; rank < shape.ranks; ++rank)
    claims.peak_chunks.push_back(
        std::min(visits, count_virtual_warmup(request, rank, kGroupSteps) + 1));
  const std::optional<ChunkCost> cost = chunk_cost(request);
  const Groups groups = find_groups(request);
  const bool fills = groups.size >= shape.ranks && fill_loop(groups, shape);
  if (!cost || cost->message > 0 || !fills) return claims;
  const auto [forward, backward, input_grad, weight_grad, message] = *cost;
  if (forward != input_grad || forward != weight_grad) return claims;
  claims.makespan =
      visits * (forward + input_grad + weight_grad) + (shape.ranks - 1) * (forward + input_grad);
  claims.max_span = claims.makespan;
  return claims;
}

const ScheduleRegistrar group_interleaved_registrar{[] {
  return ScheduleDef{
      .name = "group-interleaved",
      .aliases = {"GroupInterleaved", "pipeoffload"},
      .summary = "interleaved with half the warm-up: at most 1F1B's memory; designed for `offload`",
      .source = "Wan et al. 2025 (PipeOffload)",
      .default_chunks = 2,
      .groups_microbatches = true,
      .refuse = refuse_groups,
      .build = build_group_interleaved,
      .claims = claim_group_interleaved,
  };
}};

}  // namespace
}  // namespace bubblescope::schedules

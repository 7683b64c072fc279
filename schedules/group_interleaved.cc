// Group-interleaved 1F1B: interleaved with half the warm-up, which releases activations a
// micro-batch earlier, and with each W directly after its I. With offload it is PipeOffload. Wan
// et al., "PipeOffload: Improving Scalability of Pipeline Parallelism with Memory Optimization",
// 2025.
#include "schedules/chunk_cost.h"
#include "schedules/virtual_stages.h"

namespace bubblescope::schedules {
namespace {

/// Gradients return one step per rank, because they do not wait for W.
constexpr std::int32_t kGroupSteps = 1;

Schedule build_group_interleaved(const ScheduleRequest& request) {
  return interleave_split(request, kGroupSteps, 0);
}

/// With F, I and W of a chunk, and no time for messages:
///   T = mv (F + I + W) + (p-1) (F + I)
/// if groups fill the loop and F = I = W. Rank r holds (v-1) g + p - r chunks.
Claims claim_group_interleaved(const ScheduleRequest& request) {
  const Shape& shape = request.shape;
  const Nanos visits = Nanos{shape.microbatches} * shape.chunks;
  Claims claims;
  claims.peak_chunks = count_peak_chunks(request, kGroupSteps);
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

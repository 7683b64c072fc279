// Interleaved zero bubble: interleaved 1F1B with the backward split, weight gradients fill the end.
// PyTorch's ScheduleInterleavedZeroBubble (ZB1P), after "Zero Bubble Pipeline Parallelism", 2024.
#include <algorithm>

#include "schedules/chunk_cost.h"
#include "schedules/pytorch_cells.h"
#include "schedules/virtual_stages.h"
#include "schedules/zero_bubble.h"

namespace bubblescope::schedules {
namespace {

/// Half of interleaved 1F1B's, because only I is on the way back.
constexpr std::int32_t kZeroBubbleSteps = 1;

/// Rank r waits r visits with each W, so that all drains are full of them.
constexpr std::int32_t kRankLag = 1;

/// PyTorch starts each rank one step after the previous one, makes all warm-ups end together, and
/// then delays forwards until their inputs have arrived.
std::vector<RankOrder> zero_bubble_cells(const ScheduleRequest& request, const Schedule& schedule) {
  const Shape& shape = request.shape;
  std::vector<RankOrder> cells;
  for (std::int32_t rank = 0; rank < shape.ranks; ++rank)
    cells.push_back(
        with_idle_cells(schedule.order[rank],
                        {.lead = rank,
                         .warmup = std::min(std::int64_t{shape.microbatches} * shape.chunks,
                                            count_virtual_warmup(request, rank, kZeroBubbleSteps)),
                         .gap = shape.ranks - 1 - rank}));
  return with_forwards_in_step(cells, schedule.stages(), shape.microbatches);
}

Schedule build_interleaved_zb(const ScheduleRequest& request) {
  Schedule schedule = interleave_split(request, kZeroBubbleSteps, kRankLag);
  if (request.profile == Profile::kPytorch) schedule.posted = zero_bubble_cells(request, schedule);
  return schedule;
}

/// T = mv (F + I + W) + (p-1) max(F + 3c, I + 2c + [F + 2c - W]+) + (v-1) [p (F+c) - g F]+
/// with F, I, W of a chunk and g the size of the first group; see compute_height_one_bubble.
Claims claim_interleaved_zb(const ScheduleRequest& request) {
  const Shape& shape = request.shape;
  const Nanos visits = Nanos{shape.microbatches} * shape.chunks;
  Claims claims;
  claims.peak_chunks = count_peak_chunks(request, kZeroBubbleSteps, kRankLag);
  const Groups groups = find_groups(request);
  const std::optional<ChunkCost> cost = chunk_cost(request);
  const auto bubble = cost ? compute_height_one_bubble(shape, *cost) : std::nullopt;
  if (!bubble || !fill_loop(groups, shape)) return claims;
  const Nanos first_wait =
      clamp_to_zero(shape.ranks * (cost->forward + cost->message) - groups.size * cost->forward);
  const Nanos work = visits * (cost->forward + cost->input_grad + cost->weight_grad) +
                     (shape.chunks - 1) * first_wait;
  claims.makespan = work + (shape.ranks - 1) * bubble->makespan;
  claims.max_span = work + (shape.ranks - 1) * bubble->span;
  return claims;
}

const ScheduleRegistrar interleaved_zb_registrar{[] {
  return ScheduleDef{
      .name = "interleaved-zb",
      .aliases = {"InterleavedZeroBubble", "ZB1P"},
      .summary = "interleaved 1F1B with split backwards: weight gradients fill the drain",
      .source = "PyTorch (ScheduleInterleavedZeroBubble), after Qi et al. 2024",
      .default_chunks = 2,
      .groups_microbatches = true,
      .profiles = {Profile::kPytorch},
      .refuse = refuse_groups,
      .build = build_interleaved_zb,
      .claims = claim_interleaved_zb,
  };
}};

}  // namespace
}  // namespace bubblescope::schedules

// TeraPipe: GPipe over slices of sequences.
// Li et al., "TeraPipe: Token-Level Pipeline Parallelism for Training Large-Scale Language Models",
// 2021.
#include "schedules/chunk_cost.h"
#include "schedules/slices.h"

namespace bubblescope::schedules {
namespace {

Schedule build_terapipe(const ScheduleRequest& request) {
  const Shape& shape = request.shape;
  const std::int32_t count = count_slices(shape).microbatches;
  Schedule schedule;
  schedule.rank_of_stage = loop_placement(shape.ranks, 1);
  for (std::int32_t rank = 0; rank < shape.ranks; ++rank)
    schedule.order.push_back(
        alternate(visits_of_slices(visits_of_stage(rank, count), shape.slices), count));
  return schedule;
}

/// If F and B are those of a slice, then T = (mn+p-1) (F + B) + 2 (p-1) c.
Claims claim_terapipe(const ScheduleRequest& request) {
  const Nanos ranks = request.shape.ranks;
  const Nanos count = count_slices(request.shape).microbatches;
  Claims claims;
  claims.peak_chunks.assign(request.shape.ranks, count);
  const std::optional<ChunkCost> cost = chunk_cost(request);
  if (!cost) return claims;
  claims.makespan =
      (count + ranks - 1) * (cost->forward + cost->backward) + 2 * (ranks - 1) * cost->message;
  claims.max_span = claims.makespan;
  return claims;
}

const ScheduleRegistrar terapipe_registrar{[] {
  return ScheduleDef{
      .name = "terapipe",
      .summary =
          "GPipe over slices of sequences: an n-th of the bubble, and holds every micro-batch",
      .source = "Li et al. 2021",
      .implied_chunks = 1,
      .default_slices = 2,
      .slices_sequences = true,
      .build = build_terapipe,
      .claims = claim_terapipe,
  };
}};

}  // namespace
}  // namespace bubblescope::schedules

// Seq1F1B: 1F1B over slices of sequences, so that the bubble is counted in slices. Sun et al.,
// "Seq1F1B: Efficient Sequence-Level Pipeline Parallelism for Large Language Model Training", 2024.
#include <algorithm>

#include "schedules/chunk_cost.h"
#include "schedules/slices.h"

namespace bubblescope::schedules {
namespace {

/// The first backward is that of a micro-batch's last slice, so its n-1 other slices run first.
std::int32_t sequence_warmup(const Shape& shape, std::int32_t rank) {
  return shape.ranks - 1 - rank + shape.slices - 1;
}

Schedule build_seq1f1b(const ScheduleRequest& request) {
  const Shape& shape = request.shape;
  const std::int32_t count = count_slices(shape).microbatches;
  Schedule schedule;
  schedule.rank_of_stage = loop_placement(shape.ranks, 1);
  for (std::int32_t rank = 0; rank < shape.ranks; ++rank)
    schedule.order.push_back(alternate(visits_of_slices(visits_of_stage(rank, count), shape.slices),
                                       sequence_warmup(shape, rank)));
  return schedule;
}

/// If F and B are those of a slice and messages take no time, then
///   T = (mn+p-1) (F + B)
Claims claim_seq1f1b(const ScheduleRequest& request) {
  const Shape& shape = request.shape;
  const Nanos count = count_slices(shape).microbatches;
  Claims claims;
  for (std::int32_t rank = 0; rank < shape.ranks; ++rank)
    claims.peak_chunks.push_back(std::min<Nanos>(count, sequence_warmup(shape, rank) + 1));
  const std::optional<ChunkCost> cost = chunk_cost(request);
  if (!cost || cost->message > 0) return claims;
  claims.makespan = (count + shape.ranks - 1) * (cost->forward + cost->backward);
  claims.max_span = claims.makespan;
  return claims;
}

const ScheduleRegistrar seq1f1b_registrar{[] {
  return ScheduleDef{
      .name = "seq1f1b",
      .summary =
          "1F1B over slices of sequences: an n-th of the bubble, about an n-th of the memory",
      .source = "Sun et al. 2024",
      .implied_chunks = 1,
      .default_slices = 2,
      .slices_sequences = true,
      .build = build_seq1f1b,
      .claims = claim_seq1f1b,
  };
}};

}  // namespace
}  // namespace bubblescope::schedules

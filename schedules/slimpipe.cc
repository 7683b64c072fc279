// SlimPipe: interleaved 1F1B over slices of sequences, one micro-batch at a time through the
// chunks, so that a rank holds little more than one micro-batch's activations. Liu et al.,
// "SlimPipe: Memory-Thrifty and Efficient Pipeline Parallelism for Long-Context LLM Training",
// 2025.
#include <algorithm>

#include "schedules/chunk_cost.h"
#include "schedules/slices.h"
#include "schedules/virtual_stages.h"

namespace bubblescope::schedules {
namespace {

std::vector<std::string> refuse_slimpipe(const ScheduleRequest& request) {
  const Shape& shape = request.shape;
  if (shape.slices % shape.ranks == 0) return {};
  return {"a micro-batch's slices must fill the ranks: `slices` must be a multiple of `pp` " +
          std::to_string(shape.ranks)};
}

/// Counts a whole micro-batch through all v chunks, plus two slices for each rank that follows.
std::int64_t warmup_of(const Shape& shape, std::int32_t rank) {
  return std::int64_t{shape.chunks} * shape.slices - 1 + 2 * (shape.ranks - 1 - rank);
}

Schedule build_slimpipe(const ScheduleRequest& request) {
  const Shape& shape = request.shape;
  Schedule schedule;
  schedule.rank_of_stage = loop_placement(shape.ranks, shape.chunks);
  for (std::int32_t rank = 0; rank < shape.ranks; ++rank) {
    Visits visits = make_virtual_visits(count_slices(shape), shape.slices, rank);
    schedule.order.push_back(
        alternate(visits_of_slices(std::move(visits), shape.slices), warmup_of(shape, rank)));
  }
  return schedule;
}

/// With F and B of a slice of a chunk, as for interleaved 1F1B with groups of n:
///   T = (mnv+p-1) (F + B) + 2 (p-1) c + (v-1) ([p (F+c) - n F]+ + [p (B+c) - n B]+)
/// for c <= F, B
Claims claim_slimpipe(const ScheduleRequest& request) {
  const Shape& shape = request.shape;
  const Nanos count = Nanos{count_slices(shape).microbatches} * shape.chunks;
  Claims claims;
  for (std::int32_t rank = 0; rank < shape.ranks; ++rank)
    claims.peak_chunks.push_back(std::min(count, warmup_of(shape, rank) + 1));
  const std::optional<ChunkCost> cost = chunk_cost(request);
  if (!cost || cost->message > std::min(cost->forward, cost->backward)) return claims;
  const Nanos message = cost->message;
  claims.makespan = (count + shape.ranks - 1) * (cost->forward + cost->backward) +
                    2 * (shape.ranks - 1) * message;
  for (const Nanos time : {cost->forward, cost->backward})
    *claims.makespan +=
        (shape.chunks - 1) * clamp_to_zero(shape.ranks * (time + message) - shape.slices * time);
  claims.max_span = claims.makespan;
  return claims;
}

const ScheduleRegistrar slimpipe_registrar{[] {
  return ScheduleDef{
      .name = "slimpipe",
      .summary = "interleaved over slices, a micro-batch per group: about one micro-batch held",
      .source = "Liu et al. 2025",
      .slices_sequences = true,
      .refuse = refuse_slimpipe,
      .build = build_slimpipe,
      .claims = claim_slimpipe,
  };
}};

}  // namespace
}  // namespace bubblescope::schedules

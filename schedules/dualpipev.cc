// DualPipeV: DualPipe folded in half, so that every rank holds the weights of its stages only once.
// DeepSeek-AI, DualPipe repository, 2025 ("cut in half" by Qi et al.).
#include "schedules/chunk_cost.h"
#include "schedules/dual_phases.h"

namespace bubblescope::schedules {
namespace {

std::vector<std::string> refuse_dualpipev(const ScheduleRequest& request) {
  const Shape& shape = request.shape;
  if (shape.microbatches < 2 * shape.ranks)
    return {"every stage needs a micro-batch: `microbatches` must be at least 2 * `pp` = " +
            std::to_string(2 * shape.ranks)};
  return {};
}

Schedule build_dualpipev(const ScheduleRequest& request) {
  const Shape& shape = request.shape;
  Schedule schedule;
  schedule.rank_of_stage = zigzag_placement(shape.ranks, 2);
  for (std::int32_t rank = 0; rank < shape.ranks; ++rank)
    schedule.order.push_back(
        make_dual_order({.streams = {Stream{rank, 0}, Stream{2 * shape.ranks - 1 - rank, 0}},
                         .microbatches = shape.microbatches,
                         .depth = shape.ranks,
                         .position = rank}));
  return schedule;
}

/// Every rank holds 2p+1 chunks. For T see compute_dual_bubble.
Claims claim_dualpipev(const ScheduleRequest& request) {
  const Shape& shape = request.shape;
  Claims claims;
  claims.peak_chunks.assign(shape.ranks, 2 * shape.ranks + 1);
  const std::optional<ChunkCost> cost = chunk_cost(request);
  const std::optional<Nanos> bubble = cost ? compute_dual_bubble(*cost, shape.ranks) : std::nullopt;
  if (!bubble) return claims;
  claims.makespan = 2 * shape.microbatches * (cost->forward + cost->backward) + *bubble;
  claims.max_span = claims.makespan;
  return claims;
}

const ScheduleRegistrar dualpipev_registrar{[] {
  return ScheduleDef{
      .name = "dualpipev",
      .aliases = {"DualPipeV"},
      .summary = "a V of two chunks per rank; forwards of one overlap backwards of the other",
      .source = "DeepSeek-AI 2025",
      .implied_chunks = 2,
      .profiles = {Profile::kPytorch, Profile::kDeepseek},
      .refuse = refuse_dualpipev,
      .build = build_dualpipev,
      .claims = claim_dualpipev,
  };
}};

}  // namespace
}  // namespace bubblescope::schedules

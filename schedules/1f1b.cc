// 1F1B: each rank runs a backward as soon as one is ready, so that rank r holds at most p-r
// micro-batches. Narayanan et al., "Memory-Efficient Pipeline-Parallel DNN Training"
// (PipeDream-Flush), 2021; Fan et al., "DAPPLE", 2021.
#include <algorithm>

#include "schedules/chunk_cost.h"
#include "schedules/rank_order.h"

namespace bubblescope::schedules {
namespace {

std::vector<std::string> refuse_1f1b(const ScheduleRequest& request) {
  const Shape& shape = request.shape;
  if (request.profile == Profile::kPytorch && shape.microbatches < shape.ranks)
    return {"pytorch needs a micro-batch per stage: `microbatches` must be at least `pp` = " +
            std::to_string(shape.ranks)};
  return {};
}

Schedule build_1f1b(const ScheduleRequest& request) {
  const Shape& shape = request.shape;
  Schedule schedule;
  schedule.rank_of_stage = loop_placement(shape.ranks, 1);
  for (std::int32_t rank = 0; rank < shape.ranks; ++rank)
    schedule.order.push_back(
        alternate(visits_of_stage(rank, shape.microbatches), shape.ranks - 1 - rank));
  return schedule;
}

/// T = (m+p-1) (F + B) + 2 (p-1) c + 2 c floor((m-1) (p-1) / p)
///
/// Rank 0 has p micro-batches in flight, and their round trip takes p (F + B) + 2 (p-1) c, so
/// messages cost time in every round, not only in the warm-up and the drain.
Claims claim_1f1b(const ScheduleRequest& request) {
  const Nanos ranks = request.shape.ranks;
  const Nanos microbatches = request.shape.microbatches;
  const ChunkCost cost = *chunk_cost(request);
  const Nanos exposed = ranks - 1 + (microbatches - 1) * (ranks - 1) / ranks;
  Claims claims;
  claims.makespan =
      (microbatches + ranks - 1) * (cost.forward + cost.backward) + 2 * exposed * cost.message;
  claims.max_span = claims.makespan;
  for (Nanos rank = 0; rank < ranks; ++rank)
    claims.peak_chunks.push_back(std::min(microbatches, ranks - rank));
  return claims;
}

const ScheduleRegistrar one_f_one_b_registrar{[] {
  return ScheduleDef{
      .name = "1f1b",
      .aliases = {"1F1B", "pipedream-flush"},
      .summary = "forward and backward in turn: GPipe's bubble, at most p micro-batches held",
      .source = "Narayanan et al. 2021 (PipeDream-Flush), Fan et al. 2021 (DAPPLE)",
      .implied_chunks = 1,
      .profiles = {Profile::kPytorch, Profile::kMegatron, Profile::kDeepspeed,
                   Profile::kColossalai},
      .refuse = refuse_1f1b,
      .build = build_1f1b,
      .claims = claim_1f1b,
  };
}};

}  // namespace
}  // namespace bubblescope::schedules

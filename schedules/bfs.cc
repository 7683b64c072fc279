// Looped BFS: all micro-batches pass a chunk before the next chunk begins. Lamy-Poirier,
// "Breadth-First Pipeline Parallelism", 2023.
#include <algorithm>

#include "schedules/chunk_cost.h"
#include "schedules/pytorch_cells.h"
#include "schedules/virtual_stages.h"

namespace bubblescope::schedules {
namespace {

/// PyTorch starts each rank one step after the previous one, and leaves two steps for each rank
/// that the first backward passes.
RankOrder pytorch_cells(const Shape& shape, std::int32_t rank, const RankOrder& ops) {
  return with_idle_cells(
      ops, {.lead = rank, .warmup = std::ssize(ops) / 2, .gap = 2 * (shape.ranks - 1 - rank)});
}

/// PyTorch drains each chunk from its newest micro-batch, the paper from its oldest.
Schedule build_bfs(const ScheduleRequest& request) {
  const Shape& shape = request.shape;
  Schedule schedule;
  schedule.rank_of_stage = loop_placement(shape.ranks, shape.chunks);
  for (std::int32_t rank = 0; rank < shape.ranks; ++rank) {
    Visits visits = make_virtual_visits(shape, shape.microbatches, rank);
    if (request.profile == Profile::kPytorch)
      visits.backward.assign(visits.forward.rbegin(), visits.forward.rend());
    schedule.order.push_back(alternate(visits, std::ssize(visits.forward)));
    if (request.profile == Profile::kPytorch)
      schedule.posted.push_back(pytorch_cells(shape, rank, schedule.order[rank]));
  }
  return schedule;
}

/// Forwards pass the ranks v times, and so do backwards. A rank starts its next chunk when it has
/// run all m ops of this one and the first of them has returned from its round over the p ranks:
///   T = t(F) + t(B),  t(X) = (v-1) max(m X, p (X+c)) + (m+p-1) X + (p-1) c
Claims claim_bfs(const ScheduleRequest& request) {
  const Nanos ranks = request.shape.ranks;
  const Nanos microbatches = request.shape.microbatches;
  const Nanos chunks = request.shape.chunks;
  Claims claims;
  claims.peak_chunks.assign(request.shape.ranks, microbatches * chunks);
  const std::optional<ChunkCost> cost = chunk_cost(request);
  if (!cost) return claims;
  claims.makespan = 0;
  for (const Nanos time : {cost->forward, cost->backward}) {
    const Nanos round = std::max(microbatches * time, ranks * (time + cost->message));
    *claims.makespan +=
        (chunks - 1) * round + (microbatches + ranks - 1) * time + (ranks - 1) * cost->message;
  }
  claims.max_span = claims.makespan;
  return claims;
}

const ScheduleRegistrar bfs_registrar{[] {
  return ScheduleDef{
      .name = "bfs",
      .aliases = {"LoopedBFS"},
      .summary = "all micro-batches chunk by chunk: the interleaved bubble, tolerant of latency",
      .source = "Lamy-Poirier 2023",
      .default_chunks = 2,
      .profiles = {Profile::kPytorch},
      .build = build_bfs,
      .claims = claim_bfs,
  };
}};

}  // namespace
}  // namespace bubblescope::schedules

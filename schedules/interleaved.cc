// Interleaved 1F1B: v chunks per rank divide the bubble by v, for v times the messages. Narayanan
// et al., "Efficient Large-Scale Language Model Training on GPU Clusters", 2021.
#include <algorithm>
#include <utility>

#include "schedules/chunk_cost.h"
#include "schedules/pytorch_cells.h"
#include "schedules/virtual_stages.h"

namespace bubblescope::schedules {
namespace {

/// A micro-batch travels to the last rank and back: two steps for each rank in between.
constexpr std::int32_t kWarmupSteps = 2;

/// PyTorch starts each rank one step after the previous one, waits until the first backward can
/// arrive, v p + 2 (p-1-r) steps after the start, and takes two steps for each backward of the
/// cool-down.
RankOrder virtual_cells(const ScheduleRequest& request, std::int32_t rank, const RankOrder& ops) {
  const Shape& shape = request.shape;
  const std::int64_t visits = std::ssize(ops) / 2;
  const std::int64_t warmup = std::min(visits, count_virtual_warmup(request, rank, kWarmupSteps));
  const std::int64_t first_backward =
      std::int64_t{shape.chunks} * shape.ranks + kWarmupSteps * (shape.ranks - 1 - rank);
  return with_idle_cells(ops, {.lead = rank,
                               .warmup = warmup,
                               .gap = first_backward - warmup - rank,
                               .cooldown = 2 * visits - warmup});
}

/// Marks every forward after the warm-up and the backward that follows it as a pair.
RankOrder pair_turns(RankOrder ops, std::int64_t warmup) {
  for (auto at = static_cast<std::size_t>(warmup); at + 1 < ops.size(); at += 2) {
    if (ops[at].kind != OpKind::kForward || ops[at + 1].kind == OpKind::kForward) break;
    ops[at].pairing = Pairing::kFirst;
    ops[at + 1].pairing = Pairing::kSecond;
  }
  return ops;
}

Schedule build_interleaved(const ScheduleRequest& request) {
  const Shape& shape = request.shape;
  Schedule schedule;
  schedule.rank_of_stage = loop_placement(shape.ranks, shape.chunks);
  const std::int32_t group_size = find_groups(request).size;
  for (std::int32_t rank = 0; rank < shape.ranks; ++rank) {
    const std::int64_t warmup = count_virtual_warmup(request, rank, kWarmupSteps);
    RankOrder ops = alternate(make_virtual_visits(shape, group_size, rank), warmup);
    if (request.moe_overlap == MoeOverlap::kPairs) ops = pair_turns(std::move(ops), warmup);
    schedule.order.push_back(std::move(ops));
  }
  if (request.profile == Profile::kPytorch)
    for (std::int32_t rank = 0; rank < shape.ranks; ++rank)
      schedule.posted.push_back(virtual_cells(request, rank, schedule.order[rank]));
  return schedule;
}

/// With F and B of a chunk, g the size of the first group, h of the last:
///   T = (mv+p-1) (F + B) + 2 (p-1) c + (v-1) ([p (F+c) - g F]+ + [p (B+c) - h B]+)
/// for c <= F, B: messages cost time when the first group goes down and the last one comes up.
Claims claim_interleaved(const ScheduleRequest& request) {
  const Nanos ranks = request.shape.ranks;
  const Nanos chunks = request.shape.chunks;
  const Nanos visits = request.shape.microbatches * chunks;
  Claims claims;
  claims.peak_chunks = count_peak_chunks(request, kWarmupSteps);
  const Groups groups = find_groups(request);
  const std::optional<ChunkCost> cost = chunk_cost(request);
  if (!cost || !fill_loop(groups, request.shape)) return claims;
  const auto [forward, backward, input_grad, weight_grad, message] = *cost;
  if (message > std::min(forward, backward)) return claims;
  const Nanos first_wait = clamp_to_zero(ranks * (forward + message) - groups.size * forward);
  const Nanos last_wait = clamp_to_zero(ranks * (backward + message) - groups.last * backward);
  claims.makespan = (visits + ranks - 1) * (forward + backward) + 2 * (ranks - 1) * message +
                    (chunks - 1) * (first_wait + last_wait);
  claims.max_span = claims.makespan;
  return claims;
}

const ScheduleRegistrar interleaved_registrar{[] {
  return ScheduleDef{
      .name = "interleaved",
      .aliases = {"Interleaved1F1B", "vpp"},
      .summary = "1F1B over v chunks per rank: a v-th of the bubble, v times the messages",
      .source = "Narayanan et al. 2021 (Megatron-LM)",
      .default_chunks = 2,
      .groups_microbatches = true,
      .needs_full_groups = true,
      .overlaps_experts = true,
      .profiles = {Profile::kPytorch, Profile::kMegatron, Profile::kColossalai},
      .refuse = refuse_groups,
      .build = build_interleaved,
      .claims = claim_interleaved,
  };
}};

}  // namespace
}  // namespace bubblescope::schedules

// Forward only: inference or evaluation, in the order of the interleaved schedule's forwards.
#include <algorithm>

#include "schedules/chunk_cost.h"
#include "schedules/virtual_stages.h"

namespace bubblescope::schedules {
namespace {

std::vector<std::string> refuse_forward_only(const ScheduleRequest& request) {
  // All groups give the same order.
  if (request.shape.chunks == 1) return {};
  if (request.profile == Profile::kPytorch || request.profile == Profile::kDeepspeed)
    return {to_string(request.profile) + " evaluates one chunk per rank; leave `vpp` out"};
  return refuse_groups(request);
}

Schedule build_forward_only(const ScheduleRequest& request) {
  const Shape& shape = request.shape;
  Schedule schedule;
  schedule.forward_only = true;
  schedule.rank_of_stage = loop_placement(shape.ranks, shape.chunks);
  for (std::int32_t rank = 0; rank < shape.ranks; ++rank) {
    RankOrder& ops = schedule.order.emplace_back();
    const Visits visits = make_virtual_visits(shape, find_groups(request).size, rank);
    for (const Visit& visit : visits.forward) ops.push_back(forward(visit.stage, visit.microbatch));
  }
  return schedule;
}

/// Every rank starts F+c after the previous one. A group of n micro-batches takes n F per chunk,
/// but before the next chunk its first one must return from its round over the p ranks:
///   T = sum over groups of ((v-1) max(n F, p (F+c)) + n F)  +  (p-1) (F+c)
Claims claim_forward_only(const ScheduleRequest& request) {
  const Shape& shape = request.shape;
  const std::optional<ChunkCost> cost = chunk_cost(request);
  if (!cost) return {};
  const Nanos step = cost->forward + cost->message;
  const auto group_time = [&](Nanos size) {
    const Nanos round = std::max(size * cost->forward, shape.ranks * step);
    return (shape.chunks - 1) * round + size * cost->forward;
  };
  const auto [size, last] = find_groups(request);
  Claims claims;
  claims.max_span = (shape.microbatches - last) / size * group_time(size) + group_time(last);
  claims.makespan = *claims.max_span + (shape.ranks - 1) * step;
  return claims;
}

const ScheduleRegistrar forward_only_registrar{[] {
  return ScheduleDef{
      .name = "forward-only",
      .summary = "no backward: inference or evaluation",
      .source = "Megatron-LM, DeepSpeed (InferenceSchedule)",
      .groups_microbatches = true,
      .trains = false,
      .profiles = {Profile::kPytorch, Profile::kMegatron, Profile::kDeepspeed,
                   Profile::kColossalai},
      .refuse = refuse_forward_only,
      .build = build_forward_only,
      .claims = claim_forward_only,
  };
}};

}  // namespace
}  // namespace bubblescope::schedules

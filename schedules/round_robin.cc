// Computes the warm-ups and turns of 1F1B-RR.
#include "schedules/round_robin.h"

#include <algorithm>
#include <numeric>

#include "schedules/rank_order.h"
#include "sim/ir/counted.h"

namespace bubblescope::schedules {

namespace {

/// Replica q of r runs every r-th micro-batch.
Visits visits_of_replica(const Visit& first, std::int32_t microbatches, std::int32_t replicas) {
  Visits visits;
  for (std::int32_t at = first.microbatch; at < microbatches; at += replicas)
    visits.forward.push_back({first.stage, at});
  visits.backward = visits.forward;
  return visits;
}

}  // namespace

std::vector<std::int32_t> replicas_of(const ScheduleRequest& request) {
  if (!request.replicas.empty()) return request.replicas;
  return std::vector<std::int32_t>(static_cast<std::size_t>(request.shape.ranks), 1);
}

std::vector<std::string> refuse_round_robin(const ScheduleRequest& request) {
  const std::vector<std::int32_t> replicas = replicas_of(request);
  std::vector<std::string> reasons;
  if (*std::min_element(replicas.begin(), replicas.end()) < 1)
    reasons.push_back("`replicas`: every stage needs at least 1 rank");
  const std::int32_t ranks = std::accumulate(replicas.begin(), replicas.end(), 0);
  if (ranks != request.shape.ranks)
    reasons.push_back("`replicas` uses " + counted(ranks, "rank") + "; `pp` must be that, not " +
                      std::to_string(request.shape.ranks));
  if (request.in_flight.value_or(1) < 1) reasons.push_back("`in_flight` must be at least 1");
  return reasons;
}

std::int32_t count_round_robin_warmup(const ScheduleRequest& request, std::int32_t stage) {
  const std::vector<std::int32_t> replicas = replicas_of(request);
  const std::int64_t here = replicas[static_cast<std::size_t>(stage)];
  const std::int64_t ranks_left = std::accumulate(replicas.begin() + stage, replicas.end(), 0);
  if (!request.in_flight) return static_cast<std::int32_t>((ranks_left - 1) / here);
  const std::int64_t on_their_way = std::int64_t{*request.in_flight} * replicas.front();
  return static_cast<std::int32_t>((on_their_way * ranks_left - 1) / (request.shape.ranks * here));
}

Schedule build_round_robin(const ScheduleRequest& request) {
  Schedule schedule;
  if (!request.replicas.empty()) schedule.replicas_of_stage = request.replicas;
  std::int32_t stage = 0;
  for (const std::int32_t replicas : replicas_of(request)) {
    schedule.rank_of_stage.push_back(static_cast<std::int32_t>(schedule.order.size()));
    const std::int32_t warmup = count_round_robin_warmup(request, stage);
    for (std::int32_t replica = 0; replica < replicas; ++replica)
      schedule.order.push_back(alternate(
          visits_of_replica({stage, replica}, request.shape.microbatches, replicas), warmup));
    ++stage;
  }
  return schedule;
}

Claims claim_round_robin(const ScheduleRequest& request) {
  if (!request.replicas.empty() || request.in_flight) return {};
  return find_schedule("1f1b").claims(request);
}

}  // namespace bubblescope::schedules

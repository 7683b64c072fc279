// PipeDream: 1F1B that never flushes. Every backward ends with an update, and micro-batches on
// their way keep the weights that they began with (weight stashing). Narayanan et al., "PipeDream:
// Generalized Pipeline Parallelism for DNN Training", 2019.
#include <algorithm>
#include <numeric>

#include "schedules/rank_order.h"
#include "schedules/weight_versions.h"
#include "sim/model/schedule_def.h"

namespace bubblescope {
namespace {

std::vector<std::int32_t> replicas_of(const ScheduleRequest& request) {
  if (!request.replicas.empty()) return request.replicas;
  return std::vector<std::int32_t>(request.shape.ranks, 1);
}

std::vector<std::string> refuse(const ScheduleRequest& request) {
  const std::vector<std::int32_t> replicas = replicas_of(request);
  if (*std::min_element(replicas.begin(), replicas.end()) < 1)
    return {"--replicas: every stage needs at least 1 rank"};
  const std::int32_t ranks = std::accumulate(replicas.begin(), replicas.end(), 0);
  if (ranks == request.shape.ranks) return {};
  return {"--replicas uses " + std::to_string(ranks) + " rank(s); --pp must be that, not " +
          std::to_string(request.shape.ranks)};
}

/// Replica q of r takes every r-th micro-batch.
Visits visits_of_replica(const Op& first, std::int32_t microbatches, std::int32_t replicas) {
  Visits visits;
  for (std::int32_t at = first.microbatch; at < microbatches; at += replicas)
    visits.forward.push_back({first.stage, at});
  visits.backward = visits.forward;
  return visits;
}

/// With R ranks from this stage on, r of them here, a rank warms up with
///   w = floor((R-1) / r)
/// forwards, and reads weights that are w updates old. Replicas update together; the reduction of
/// their gradients is taken to be hidden. On the first stage w+1 is the paper's NOAM, ceil(R / r).
Schedule build(const ScheduleRequest& request) {
  const Shape& shape = request.shape;
  Schedule schedule;
  if (!request.replicas.empty()) schedule.replicas_of_stage = request.replicas;
  std::int32_t stage = 0;
  for (const std::int32_t replicas : replicas_of(request)) {
    const auto first_rank = static_cast<std::int32_t>(schedule.order.size());
    const std::int32_t warmup = (shape.ranks - first_rank - 1) / replicas;
    schedule.rank_of_stage.push_back(first_rank);
    for (std::int32_t replica = 0; replica < replicas; ++replica) {
      const Visits visits = visits_of_replica({stage, replica}, shape.microbatches, replicas);
      schedule.order.push_back(alternate(visits, warmup));
      schedule.weights.push_back(weights_of(schedule.order.back(), {replicas, warmup}));
    }
    ++stage;
  }
  return schedule;
}

/// What 1F1B claims for as many micro-batches: without replicas the orders are the same.
Claims claim(const ScheduleRequest& request) {
  return request.replicas.empty() ? find_schedule("1f1b").claims(request) : Claims{};
}

const ScheduleRegistrar registrar{{
    .name = "pipedream",
    .summary = "1F1B without flushes: no bubble once full, p versions of the weights",
    .source = "Narayanan et al. 2019",
    .implied_chunks = 1,
    .replicates_stages = true,
    .refuse = refuse,
    .build = build,
    .claims = claim,
}};

}  // namespace
}  // namespace bubblescope

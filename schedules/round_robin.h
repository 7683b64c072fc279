// PipeDream's 1F1B-RR: 1F1B without flushes on stages that several ranks may share. Replica i mod r
// of a stage runs the forward and the backward of micro-batch i.
#pragma once

#include <string>
#include <vector>

#include "sim/model/schedule_def.h"

namespace bubblescope::schedules {

/// Returns the number of ranks that share each stage: as requested, or one each.
std::vector<std::int32_t> replicas_of(const ScheduleRequest& request);

/// Refuses replicas that do not add up to the ranks, and an `in_flight` of 0.
std::vector<std::string> refuse_round_robin(const ScheduleRequest& request);

/// The number of forwards before the first backward on a stage's ranks. With R ranks from this
/// stage on, r of them on this stage,
///   w = floor((R-1) / r)
/// which on the first stage is one less than the paper's NOAM, ceil(R / r). With `in_flight` K,
/// k = K r0 micro-batches are in flight from the r0 ranks of the first stage. A stage gets a share
/// of them in proportion to its round trip, R of all p ranks:
///   w = ceil(k R / (p r)) - 1
std::int32_t count_round_robin_warmup(const ScheduleRequest& request, std::int32_t stage);

/// Builds placement, replicas and orders; no weights.
Schedule build_round_robin(const ScheduleRequest& request);

/// The claims of 1F1B if the order is the same: without replicas and `in_flight`.
Claims claim_round_robin(const ScheduleRequest& request);

}  // namespace bubblescope::schedules

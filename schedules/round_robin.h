// PipeDream's 1F1B-RR: 1F1B without flushes on stages that several ranks may share. Micro-batch i
// goes through replica i mod r of a stage, forward and backward.
#pragma once

#include <string>
#include <vector>

#include "sim/model/schedule_def.h"

namespace bubblescope {

/// Ranks that share each stage: those of --replicas, or one for each.
std::vector<std::int32_t> replicas_of(const ScheduleRequest& request);

/// Replicas that do not add up to the ranks; an --in-flight of none.
std::vector<std::string> refuse_round_robin(const ScheduleRequest& request);

/// Forwards before the first backward of a stage's ranks. With R ranks from this stage on, r of
/// them here,
///   w = floor((R-1) / r)
/// which on the first stage is one less than the paper's NOAM, ceil(R / r). With --in-flight K, k =
/// K r0 micro-batches are on their way from the r0 ranks of the first stage; a stage gets its share
/// of them, for the round trip from it takes R of the time of all p ranks:
///   w = ceil(k R / (p r)) - 1
std::int32_t round_robin_warmup(const ScheduleRequest& request, std::int32_t stage);

/// Placement, replicas and orders; no weights.
Schedule build_round_robin(const ScheduleRequest& request);

/// What 1F1B claims, where the order is the same: without --replicas and --in-flight.
Claims claim_round_robin(const ScheduleRequest& request);

}  // namespace bubblescope

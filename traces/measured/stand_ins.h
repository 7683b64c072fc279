// Stand-ins: ops of no duration for ranks whose traces are missing, so that the ops of the other
// ranks still make a step, under their own numbers. No report shows them.
#pragma once

#include <cstdint>
#include <vector>

#include "traces/files/trace_format.h"
#include "traces/measured/rank_numbers.h"

namespace bubblescope::traces {

/// The ranks without an op, and the stages that they must have run; empty where nothing shows them.
/// `computes` are the compute ops of one step, whose `recorder` is their rank.
StagesByRank find_unrecorded_stages(const std::vector<ObservedOp>& computes, std::int32_t ranks);

/// Returns the ops of these stages, in an order that the ranks can have run. Each op is at the time
/// at which its input ended on a recorded stage or, if there is none, at which its reader began.
/// Kinds and micro-batches are those of the nearest recorded stage. `computes` are those of
/// find_unrecorded_stages().
std::vector<ObservedOp> make_stand_ins(const std::vector<ObservedOp>& computes,
                                       const StagesByRank& missing);

}  // namespace bubblescope::traces

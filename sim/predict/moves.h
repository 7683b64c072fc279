// Adds recomputation, offload and sharding to a schedule.
#pragma once

#include "sim/ir/valid_schedule.h"
#include "sim/predict/config.h"

namespace bubblescope::inline sim {

/// Adds the ops of all moves; the result is validated again. Throws Error where the schedule cannot
/// have one of them: where it recomputes or evicts already, or is to be sharded but posts its
/// messages or collectives itself.
ValidSchedule apply_moves(ValidSchedule schedule, const Moves& moves);

}  // namespace bubblescope::inline sim

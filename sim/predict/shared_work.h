// The work of a measured schedule besides its forwards and backwards, so that another schedule can
// be predicted with all of it.
#pragma once

#include "sim/ir/lower.h"
#include "sim/ir/valid_schedule.h"
#include "sim/predict/config.h"

namespace bubblescope::inline sim {

struct SharedWork {
  LowerOptions lower = {};  ///< how a step ends
  Moves moves = {};         ///< recomputation and sharded parameters
};

/// Returns the work of the measured schedule, for another one. Throws Error if the other one cannot
/// have it: if activations are offloaded, if parameters are gathered in an order that follows no
/// rule, or if only some stages recompute and the other one has other stages.
SharedWork find_shared_work(const ValidSchedule& measured, const LowerOptions& lower,
                            const ValidSchedule& other);

}  // namespace bubblescope::inline sim

// The end of a step as instructions, lanes and edges: gradient reductions, the gradient norm and
// optimizer steps. What the Program has stays as it is, and starts when it did.
//
//   lane "collective", per rank, in order
//     REDUCE_GRAD  of each stage, when it is complete; where several ranks hold the stage's
//     weights,
//                  a post first, by which they wait for each other
//     NORM         a post when all of the rank's gradients are there (and reduced); under kBarrier
//                  then the sum over all ranks, at once on all of them, when the last has posted
//   the compute lane
//     OPT          of each stage, behind the rank's last op
//   no lane
//     NORM         under kPostValidation, the sum so far on its way to the next rank; OPT waits for
//                  that of the rank before
//
// Asynchronous schedules update behind each op that writes a version of the weights: there stands
// OPT, and before it, where replicas share the stage, a REDUCE_GRAD that waits for all of them.
#pragma once

#include <variant>

#include "sim/ir/program.h"
#include "sim/ir/update.h"
#include "sim/ir/valid_schedule.h"

namespace bubblescope {

/// `program` is what lower() makes of the schedule otherwise. Throws Error for schedules that make
/// no gradients, and for asynchronous ones under anything but kLocal.
std::variant<Program, Deadlock> lower_update(const ValidSchedule& schedule, const Program& program,
                                             const UpdateOptions& options);

/// The asynchronous part of it: an update behind each op that writes a version of the weights.
std::variant<Program, Deadlock> lower_updates_as_written(const ValidSchedule& schedule,
                                                         const Program& program,
                                                         const UpdateOptions& options);

}  // namespace bubblescope

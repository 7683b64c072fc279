// Lowers the end of a step: gradient reductions, the gradient norm and optimizer steps. The
// Program's own instructions keep their start times.
//
//   lane "collective", per rank, in order
//     REDUCE_GRAD  of each stage, when its gradients are complete; if several ranks hold the
//                  stage's weights, a post comes first, by which they wait for each other
//     NORM         a post when all of the rank's gradients are ready (and reduced); under kBarrier
//                  then the sum over all ranks, at once on all of them, after the last post
//   the compute lane
//     OPT          of each stage, after the rank's last op
//   no lane
//     NORM         under kPostValidation, the partial sum on its way to the next rank; OPT waits
//                  for the partial sum of the previous rank
//
// Asynchronous schedules update after each op that writes a version of the weights: OPT follows it,
// after a REDUCE_GRAD that waits for all replicas if the stage has several.
#pragma once

#include <variant>

#include "sim/ir/program.h"
#include "sim/ir/update.h"
#include "sim/ir/valid_schedule.h"

namespace bubblescope::inline sim {

/// `program` is the schedule's Program without updates. Throws Error for schedules without
/// gradients, and for asynchronous ones under any mode but kLocal.
std::variant<Program, Deadlock> lower_update(const ValidSchedule& schedule, const Program& program,
                                             const UpdateOptions& options);

/// Handles the asynchronous case: an update follows each op that writes a version of the weights.
std::variant<Program, Deadlock> lower_asynchronous_updates(const ValidSchedule& schedule,
                                                           const Program& program,
                                                           const UpdateOptions& options);

}  // namespace bubblescope::inline sim

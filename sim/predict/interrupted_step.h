// The step in which a rank dies.
//
// Until the others know of it, they continue as in a step without a loss. The lost rank's results
// of this step are lost: its activations, and the gradients that it has added up but not yet
// reduced. Its messages have arrived. Its peers repeat all of its micro-batches from their inputs,
// which its neighbours have kept: activations of the stage before it, gradients of the stage after
// it. Nothing else is repeated. A message of an op that had ended when the rank died is not lost.
//
// As a Program: the job without the rank, whose peers begin with the ops that they have begun, and
//   - a wait until the loss is known, before everything that has not begun then,
//   - a wait for each op that the lost rank has ended, for which its neighbours wait instead of the
//     repeated op.
#pragma once

#include "sim/predict/rank_loss.h"

namespace bubblescope::inline sim {

/// `healthy` is the predicted step of one replica. The rest of the step has the fastest of the
/// orders of reroute(). Throws Error where the rank dies after the end of that step.
InterruptedStep interrupt_step(const Prediction& healthy, const RankLoss& loss,
                               const Config& config);

}  // namespace bubblescope::inline sim

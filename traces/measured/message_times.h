// Finds when the messages of an observed step were in transit.
#pragma once

#include <vector>

#include "traces/files/trace_format.h"

namespace bubblescope::traces {

/// Returns the times of all instructions, given those of the compute ops; the `recorder` of an
/// observed message is its rank. Messages without a number are assigned in order: a rank's n-th
/// SEND_F belongs to its n-th forward whose activation leaves the rank. A message is in transit
/// from the time when both of its ends are posted until the receive ends; what a receive waits
/// before that is idle time of its rank. A message lies between its producer's end and its
/// consumer's start, and takes no time where the step does not show it.
Timeline time_messages(const Schedule& schedule, const Program& program,
                       std::vector<ObservedOp> messages, Timeline timeline);

}  // namespace bubblescope::traces

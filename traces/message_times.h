// When the messages of an observed step were on their way.
#pragma once

#include <vector>

#include "traces/trace_format.h"

namespace bubblescope {

/// Fills in the messages of a Timeline whose compute ops are there; `recorder` of an observed
/// message is its rank. Messages without a number are dealt in order: a rank's n-th SEND_F is that
/// of its n-th forward whose activation leaves the rank. A message is on its way from when both its
/// ends were there until the receive ended: what a receive waits before that is a bubble of its
/// rank. It lies between its producer's end and its consumer's start, and takes no time where the
/// step saw none.
void time_messages(const Schedule& schedule, const Program& program,
                   std::vector<ObservedOp> messages, Timeline& timeline);

}  // namespace bubblescope

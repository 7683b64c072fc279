// Adds a runtime's waits for its sends to a lowered Program, where a send budget asks for them.
//
//   rank 0: 0F0 0SEND_F0 0F1 0WAIT_SEND_F0 0SEND_F1 0F2
//
//   WAIT_SEND  an instruction in no lane: it ends when the rank has reached it and the send is
//              done, and then the rank no longer holds the output
//
// When a send is done depends on the mode (docs/messages.md). In `dataflow`, where nothing is
// posted, that is when the message has arrived; the rank's next message and its next compute op
// wait for it. In the other modes lower_messages() has made them wait.
#pragma once

#include <variant>
#include <vector>

#include "sim/ir/lower.h"

namespace bubblescope::inline sim {

/// `program` is lowered from `lists`, which have a WAIT_SEND for each SEND.
std::variant<Program, Deadlock> lower_send_waits(const ValidSchedule& schedule,
                                                 const Program& program,
                                                 const std::vector<RankOrder>& lists,
                                                 const LowerOptions& options);

}  // namespace bubblescope::inline sim

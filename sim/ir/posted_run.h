// Runs posted lists without a clock and without a Program of posts and waits: do they come to their
// end, and if not, who waits for whom? What lower_messages() would add stands in two bits and a
// place per rank, so that millions of messages are checked in the memory of their lists.
#pragma once

#include <optional>
#include <vector>

#include "sim/ir/lower.h"
#include "sim/ir/posted_steps.h"

namespace bubblescope {

/// The Deadlock that lower_messages() finds, or nothing where it makes a Program.
std::optional<Deadlock> find_message_deadlock(const Program& dataflow,
                                              const std::vector<PostedSteps>& steps,
                                              const LowerOptions& options);

}  // namespace bubblescope

// Runs posted lists without a clock and without a Program of posts and waits, to find deadlocks.
// Each rank needs one position and each instruction four bits, so that millions of messages can be
// checked in little more memory than their lists.
#pragma once

#include <optional>
#include <vector>

#include "sim/ir/lower.h"
#include "sim/ir/posted_steps.h"

namespace bubblescope::inline sim {

/// The Deadlock that lower_messages() would find; empty if it would return a Program.
std::optional<Deadlock> find_message_deadlock(const Program& dataflow,
                                              const std::vector<PostedSteps>& steps,
                                              const LowerOptions& options);

}  // namespace bubblescope::inline sim

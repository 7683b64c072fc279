// Finds what an instruction waits for.
#pragma once

#include <functional>
#include <optional>

#include "sim/ir/program.h"

namespace bubblescope::exec {

/// Follows the unfinished dependencies of an instruction that has not started, to an op in a lane
/// or to the last instruction without a lane. Empty if the instruction was about to start.
std::optional<InstructionId> find_awaited(const Program& program, InstructionId id,
                                          const std::function<bool(InstructionId)>& has_ended);

}  // namespace bubblescope::exec

// Finds what an instruction waits for.
#pragma once

#include <functional>
#include <optional>

#include "sim/ir/program.h"

namespace bubblescope::exec {

/// For an instruction that has not started: follows its unfinished dependencies to an op in a lane,
/// or to the last instruction without a lane. Empty: it was about to start.
std::optional<InstructionId> find_awaited(const Program& program, InstructionId id,
                                          const std::function<bool(InstructionId)>& has_ended);

}  // namespace bubblescope::exec

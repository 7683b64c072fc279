// What an instruction waits for.
#pragma once

#include <functional>
#include <optional>

#include "sim/ir/program.h"

namespace bubblescope {

/// Of one that has not started: the op in a lane at the end of what it waits for, or the last
/// instruction outside of lanes on the way there. Empty: it was about to start.
std::optional<InstructionId> find_awaited(const Program& program, InstructionId id,
                                          const std::function<bool(InstructionId)>& has_ended);

}  // namespace bubblescope

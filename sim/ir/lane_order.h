// The order of instructions in their lanes.
#pragma once

#include <vector>

#include "sim/ir/program.h"

namespace bubblescope::inline sim {

/// Per instruction, the one before it in its lane; kNoInstruction if there is none.
std::vector<InstructionId> find_previous_in_lane(const Program& program);

}  // namespace bubblescope::inline sim

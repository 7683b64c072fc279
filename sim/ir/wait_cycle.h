// The words for a cycle of instructions that wait for each other.
#pragma once

#include <utility>
#include <vector>

#include "sim/ir/program.h"

namespace bubblescope {

/// Instructions at which lanes are stuck, each with the one it waits for, which the next one holds
/// up; the last one's is held up by the first.
using WaitCycle = std::vector<std::pair<InstructionId, InstructionId>>;

/// What has no lane is told as a link between two that have one. A post that stands behind the very
/// op at which its own rank is stuck is left out: that op says more. The lowest rank comes first.
Deadlock deadlock_of(const WaitCycle& cycle, const std::vector<Instruction>& instructions);

}  // namespace bubblescope

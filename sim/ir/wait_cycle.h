// Turns a cycle of waiting instructions into a Deadlock that names ranks and ops.
#pragma once

#include <utility>
#include <vector>

#include "sim/ir/program.h"

namespace bubblescope::inline sim {

/// Pairs of a blocked instruction and the one it waits for. The awaited one comes after the next
/// pair's blocked instruction in its lane, and the last pair's after the first's.
using WaitCycle = std::vector<std::pair<InstructionId, InstructionId>>;

/// Instructions without a lane are reported as a link between two that have one. An instruction
/// that waits for its own rank is left out, as the next one is where the rank is, unless the whole
/// cycle is on one rank. The lowest rank comes first.
Deadlock make_deadlock(const WaitCycle& cycle, const std::vector<Instruction>& instructions);

}  // namespace bubblescope::inline sim

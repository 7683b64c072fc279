// The critical path: the chain of instructions that determines the length of the step. The slack of
// an instruction is how much later it could end without making the step longer.
#pragma once

#include <vector>

#include "sim/ir/program.h"
#include "sim/ir/timeline.h"

namespace bubblescope {

/// One longest chain, in time order. Among equal ones, stays on its rank as long as possible.
/// Leaves out the posts and waits of messages, which take no time.
std::vector<InstructionId> find_critical_path(const Program& program, const Timeline& timeline);

/// The slack of every instruction: zero on every longest chain, not only on the one that
/// find_critical_path() returns.
std::vector<Nanos> compute_slack(const Program& program, const Timeline& timeline);

}  // namespace bubblescope

// The critical path: the chain of instructions that makes the step as long as it is, and how much
// later everything else could end without making it longer.
#pragma once

#include <vector>

#include "sim/ir/program.h"
#include "sim/ir/timeline.h"

namespace bubblescope {

/// One longest chain, in time order. Among equals it stays on its rank as long as it can.
/// The posts and waits of messages, which take no time, are left out.
std::vector<InstructionId> find_critical_path(const Program& program, const Timeline& timeline);

/// Per instruction, how much later it could end while the step ends when it does.
/// Zero on every longest chain, not only on the one that find_critical_path returns.
std::vector<Nanos> compute_slack(const Program& program, const Timeline& timeline);

}  // namespace bubblescope

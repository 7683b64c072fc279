// The critical path: the chain of instructions that makes the step as long as it is, and how much
// later everything else could end without making it longer.
//
// The path leads backwards from the last end of the step, from each instruction to its holder
// (sim/analysis/holder.h). In a measured step an instruction may start some time after its holder
// has ended: launches, the host, a message that nobody saw. Such a gap belongs to the instruction
// and stays what it is, whatever else moves. So the path explains the whole step:
//
//   |== 0F0 ==|  gap  |- 0SEND_F0 -|== 1F0 ==|       durations + gaps = makespan
//
// and everything on it has a slack of 0.
#pragma once

#include <vector>

#include "sim/ir/program.h"
#include "sim/ir/timeline.h"

namespace bubblescope::inline sim {

/// One longest chain, in time order. Among equal ones, stays on its rank as long as possible.
/// Leaves out the posts and waits of messages, which take no time.
std::vector<InstructionId> find_critical_path(const Program& program, const Timeline& timeline);

/// A stretch of the critical path.
struct PathPart {
  InstructionId id = 0;
  Nanos gap = 0;   ///< since the end of the part before, or since the start of the step
  Nanos time = 0;  ///< of the instruction itself, without what overlaps the part before
};

/// The path with its gaps, which fill the step from its first start to its last end.
std::vector<PathPart> measure_path(const std::vector<InstructionId>& path,
                                   const Timeline& timeline);

/// Per instruction, how much later it could end while the step ends when it does: what it holds up
/// moves with it, and gaps stay. Zero on every longest chain, not only on the one that
/// find_critical_path returns.
std::vector<Nanos> compute_slack(const Program& program, const Timeline& timeline);

}  // namespace bubblescope::inline sim

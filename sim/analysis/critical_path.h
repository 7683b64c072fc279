// The critical path is the chain of instructions that determines the length of the step. The slack
// of an instruction is how much later it could end without making the step longer.
//
// The path is found backwards from the last instruction to end, from each instruction to its
// blocker (sim/analysis/blocker.h). In a measured step an instruction may start some time after its
// blocker ended, because of kernel launches, the host or an unrecorded message. Such a gap belongs
// to the instruction and keeps its length when other instructions move, so the path explains the
// whole step:
//
//   |== 0F0 ==|  gap  |- 0SEND_F0 -|== 1F0 ==|       durations + gaps = makespan
//
// Every instruction on the path has a slack of 0.
#pragma once

#include <vector>

#include "sim/analysis/blocker.h"
#include "sim/ir/program.h"
#include "sim/ir/timeline.h"

namespace bubblescope::inline sim {

/// The instruction at which a step ends: of those that end last the first one on the highest rank.
/// The Program must not be empty.
InstructionId find_last(const Program& program, const Timeline& timeline);

/// The critical path in time order. Among equally long chains, the one returned ends on the highest
/// rank and stays on the same rank as long as possible. Posts and waits of messages take no time
/// and are left out.
std::vector<InstructionId> find_critical_path(const Program& program, const Timeline& timeline,
                                              const Blockers& blockers);

/// One instruction of the critical path, with the gap before it.
struct PathPart {
  InstructionId id = 0;
  Nanos gap = 0;   ///< since the end of the previous part, or since the start of the step
  Nanos time = 0;  ///< time of the instruction that does not overlap the previous part
};

/// Adds the gaps to a path. Gaps and times together cover the step from its first start to its last
/// end.
std::vector<PathPart> measure_path(const std::vector<InstructionId>& path,
                                   const Timeline& timeline);

/// Whether a report has the slack of every instruction, which few outputs show.
enum class Slack : bool { kSkip, kFind };

/// The slack of every instruction, if everything that it blocks moves with it and gaps keep their
/// length. It is zero on every longest chain, not only on the one that find_critical_path returns.
std::vector<Nanos> compute_slack(const Program& program, const Timeline& timeline,
                                 const Blockers& blockers);

}  // namespace bubblescope::inline sim

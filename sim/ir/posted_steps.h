// Posted lists, resolved to the instructions of their dataflow Program.
#pragma once

#include <vector>

#include "sim/ir/program.h"
#include "sim/ir/valid_schedule.h"

namespace bubblescope::inline sim {

/// One entry of a posted list.
struct PostedStep {
  Op op;                 ///< as posted: a compute op, SEND, RECV or WAIT_SEND
  InstructionId id = 0;  ///< the compute op, or the message that is sent, received or awaited
};

/// The steps of one rank, in posted order.
using PostedSteps = std::vector<PostedStep>;

/// Returns an instruction for the post or the wait of this step's message.
Instruction make_message_end(const PostedStep& step, const Program& dataflow, std::uint32_t lane,
                             Role role);

/// Finds every posted op; other cells are left out. Indexed by rank. Throws Error for an op or a
/// message that the Program lacks, and for a message that is not posted at both ends.
std::vector<PostedSteps> find_steps(const ValidSchedule& schedule, const Program& dataflow,
                                    const std::vector<RankOrder>& posted);

}  // namespace bubblescope::inline sim

// Posted lists, found in the dataflow Program that they belong to.
#pragma once

#include <vector>

#include "sim/ir/program.h"
#include "sim/ir/valid_schedule.h"

namespace bubblescope {

/// One entry of a posted list.
struct PostedStep {
  Op op;                 ///< as posted: a compute op, a SEND, a RECV or a WAIT_SEND
  InstructionId id = 0;  ///< the compute op, or the message that is sent, received or awaited
};

/// The steps of one rank, in posted order.
using PostedSteps = std::vector<PostedStep>;

/// A post or wait at the end of a message at which this step stands.
Instruction end_of_message(const PostedStep& step, const Program& dataflow, std::uint32_t lane,
                           Role role);

/// Finds every posted op, [rank]. Other cells are left out.
/// Throws Error for an op or a message that the Program lacks, or that was not posted at both ends.
std::vector<PostedSteps> find_steps(const ValidSchedule& schedule, const Program& dataflow,
                                    const std::vector<RankOrder>& posted);

}  // namespace bubblescope

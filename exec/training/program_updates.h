// Tells which reductions and updates a Program does itself, and which are left for the end of the
// step.
#pragma once

#include <vector>

#include "exec/training/stage_replicas.h"

namespace bubblescope::exec {

/// Whether an instruction publishes gradients: a post or a join of REDUCE_GRAD.
bool publishes_gradients(const Instruction& instruction);

/// The posts that a join, or the work of a REDUCE_GRAD, adds up, in the order of the serial
/// reference: by stage and rank. A join in the list stands for its own posts. Empty if the stage is
/// on a single rank.
std::vector<InstructionId> posts_of(const Program& program, InstructionId reader);

struct ProgramUpdates {
  bool reduces = false;  ///< it reduces every stage that several ranks hold
  bool updates = false;  ///< it has optimizer steps, which update the weights
};

/// Schedules without flushes on single ranks update at their backwards. Throws Error if ranks share
/// stages in such a schedule and the Program has no optimizer steps.
ProgramUpdates find_program_updates(const Schedule& schedule, const Program& program);

}  // namespace bubblescope::exec

// What of a training's end a Program does by itself: reductions of gradients, and updates.
#pragma once

#include <vector>

#include "exec/training/homes.h"

namespace bubblescope {

/// Whether an instruction hands gradients on: a post or a join of REDUCE_GRAD.
bool hands_gradients_on(const Instruction& instruction);

/// The posts of which a join, or the work of a REDUCE_GRAD, makes a sum, in the order in which a
/// single rank would add up: by stage and rank. A join among them stands for those that it joins.
/// Empty where a stage is on a single rank.
std::vector<InstructionId> posts_of(const Program& program, InstructionId reader);

struct UpdatesInside {
  bool reduces = false;  ///< every stage that several ranks have is summed
  bool updates = false;  ///< its optimizer steps are the training's
};

/// Backwards without flushes on single ranks update by themselves. Throws Error where they share
/// stages, and the Program does not update.
UpdatesInside find_updates_inside(const Schedule& schedule, const Program& program);

}  // namespace bubblescope

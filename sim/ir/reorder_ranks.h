// A Program whose ranks run their ops in another order.
//
//   rank 0: 0F0 0F1 0B0 0B1, in the order {0F0, 0B0, 0F1, 0B1}
//     -> the same instructions and dependencies, with 0B0 before 0F1 in the lane
#pragma once

#include <variant>
#include <vector>

#include "sim/ir/program.h"

namespace bubblescope::inline sim {

/// The instructions of another Program in their new order.
struct ReorderedProgram {
  Program program;
  std::vector<InstructionId> former;  ///< per instruction, its id in the Program that was given
};

/// [rank]: instructions of its compute lane, in the order in which they are to run. They take each
/// other's places; what is not listed keeps its own.
std::variant<ReorderedProgram, Deadlock> reorder_ranks(
    const Program& given, const std::vector<std::vector<InstructionId>>& orders);

}  // namespace bubblescope::inline sim

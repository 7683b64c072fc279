// The ops that a rank may run next if its order is only a hint, and the rules by which it chooses.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/engine/memory_bound.h"
#include "sim/ir/program.h"

namespace bubblescope::inline sim {

/// The preferences of ranks, and the memory that ops add. Both are indexed by instruction; only the
/// entries of compute lanes matter.
struct ReadyRules {
  std::vector<std::int64_t> priority;  ///< the lowest runs first; ties go to the lower id
  std::vector<std::int64_t> memory;    ///< added at the start, or if negative released at the end
};

/// The ops that a rank runs at once: an op, or the two ops of a pair.
struct ReadyUnit {
  InstructionId first = kNoInstruction;
  InstructionId last = kNoInstruction;  ///< the first, or the second of a pair
  MemoryStep memory = {};
  /// An optimizer step runs after everything that is before it in its rank's order.
  bool keeps_place = false;
};

/// [rank]: what its compute lane runs, in its order.
std::vector<std::vector<ReadyUnit>> list_ready_units(const Program& program,
                                                     const ReadyRules& rules);

/// Returns the bound of a rank with these units.
MemoryBound bound_of(const std::vector<ReadyUnit>& units);

}  // namespace bubblescope::inline sim

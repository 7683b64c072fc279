// Tells ops that wait for a message.
#pragma once

#include <algorithm>

#include "sim/ir/program.h"

namespace bubblescope::inline sim {

/// Whether one of an instruction's dependencies is a message.
inline bool awaits_message(const Program& program, InstructionId id) {
  const auto awaited = program.dependencies_of(id);
  return std::any_of(awaited.begin(), awaited.end(),
                     [&](InstructionId other) { return is_message(program.instructions[other]); });
}

}  // namespace bubblescope::inline sim

// Follows messages, which are in no lane, to the op that delays them.
#include "exec/runtime/find_awaited.h"

#include <algorithm>

namespace bubblescope::exec {

std::optional<InstructionId> find_awaited(const Program& program, InstructionId id,
                                          const std::function<bool(InstructionId)>& has_ended) {
  InstructionId awaited = id;
  for (bool in_lane = false; !in_lane;) {
    const auto dependencies = program.dependencies_of(awaited);
    const auto missing = std::find_if_not(dependencies.begin(), dependencies.end(), has_ended);
    if (missing == dependencies.end()) break;
    awaited = *missing;
    in_lane = program.instructions[awaited].lane != kNoLane;
  }
  if (awaited == id) return std::nullopt;
  return awaited;
}

}  // namespace bubblescope::exec

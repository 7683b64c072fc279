// Finds neighbours in lanes.
#include "sim/ir/lane_order.h"

#include <cstdint>
#include <utility>

namespace bubblescope::inline sim {

std::vector<InstructionId> find_previous_in_lane(const Program& program) {
  std::vector<InstructionId> previous(program.size(), kNoInstruction);
  std::vector<InstructionId> last(program.lanes.size(), kNoInstruction);
  for (InstructionId id = 0; id < program.size(); ++id) {
    const std::uint32_t lane = program.instructions[id].lane;
    if (lane != kNoLane) previous[id] = std::exchange(last[lane], id);
  }
  return previous;
}

}  // namespace bubblescope::inline sim

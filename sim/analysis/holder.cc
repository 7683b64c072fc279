// Predecessors in lanes and by dependency.
#include "sim/analysis/holder.h"

namespace bubblescope {

Holders::Holders(const Program& program, const Timeline& timeline)
    : program_(program), timeline_(timeline), previous_in_lane_(program.size(), kNoInstruction) {
  std::vector<InstructionId> last(program.lanes.size(), kNoInstruction);
  for (InstructionId id = 0; id < program.size(); ++id) {
    const std::uint32_t lane = program.instructions[id].lane;
    if (lane == kNoLane) continue;
    previous_in_lane_[id] = last[lane];
    last[lane] = id;
  }
}

std::optional<InstructionId> Holders::last_dependency(InstructionId id) const {
  std::optional<InstructionId> latest;
  for (const InstructionId dependency : program_.dependencies_of(id))
    if (!latest || timeline_.end[dependency] > timeline_.end[*latest]) latest = dependency;
  return latest;
}

std::optional<InstructionId> Holders::holder(InstructionId id) const {
  const InstructionId previous = previous_in_lane_[id];
  const std::optional<InstructionId> dependency = last_dependency(id);
  if (previous == kNoInstruction) return dependency;
  if (dependency && timeline_.end[*dependency] > timeline_.end[previous]) return dependency;
  return previous;
}

}  // namespace bubblescope

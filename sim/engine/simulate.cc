// The dataflow pass.
#include "sim/engine/simulate.h"

#include <algorithm>

namespace bubblescope::inline sim {

Timeline simulate(const Program& program, std::span<const Nanos> durations) {
  Timeline timeline;
  timeline.start.resize(program.size());
  timeline.end.resize(program.size());
  std::vector<Nanos> lane_end(program.lanes.size(), 0);
  Nanos* const end = timeline.end.data();
  for (InstructionId id = 0; id < program.size(); ++id) {
    const std::uint32_t lane = program.instructions[id].lane;
    Nanos ready = lane == kNoLane ? 0 : lane_end[lane];
    for (const InstructionId dependency : program.dependencies_of(id))
      ready = std::max(ready, end[dependency]);
    timeline.start[id] = ready;
    end[id] = ready + durations[id];
    if (lane != kNoLane) lane_end[lane] = end[id];
  }
  return timeline;
}

}  // namespace bubblescope::inline sim

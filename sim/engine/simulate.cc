// The dataflow pass, and the choice between it and the event loop.
#include "sim/engine/simulate.h"

#include <algorithm>

namespace bubblescope::inline sim {

Timeline simulate(const Program& program, std::span<const Nanos> durations,
                  std::span<const Nanos> gaps) {
  Timeline timeline;
  timeline.gaps.assign(gaps.begin(), gaps.end());
  timeline.start.resize(program.size());
  timeline.end.resize(program.size());
  std::vector<Nanos> lane_end(program.lanes.size(), 0);
  Nanos* const end = timeline.end.data();
  for (InstructionId id = 0; id < program.size(); ++id) {
    const std::uint32_t lane = program.instructions[id].lane;
    Nanos ready = lane == kNoLane ? 0 : lane_end[lane];
    if (!gaps.empty()) ready += gaps[id];
    for (const InstructionId dependency : program.dependencies_of(id))
      ready = std::max(ready, end[dependency]);
    timeline.start[id] = ready;
    end[id] = ready + durations[id];
    if (lane != kNoLane) lane_end[lane] = end[id];
  }
  return timeline;
}

SimulatedRun simulate(const Program& program, const Timing& timing) {
  if (!timing.traffic) return {simulate(program, timing.durations, timing.gaps)};
  SimulatedRun run = simulate_shared(program, *timing.traffic, timing.gaps);
  run.timeline.uncontended = timing.durations;
  return run;
}

}  // namespace bubblescope::inline sim

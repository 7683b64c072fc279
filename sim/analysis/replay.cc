// Replays a Timeline in the simulator.
#include "sim/analysis/replay.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>

#include "sim/analysis/idle.h"
#include "sim/analysis/waiting_messages.h"
#include "sim/engine/simulate.h"

namespace bubblescope::inline sim {

std::vector<Nanos> collect_durations(const Timeline& timeline) {
  std::vector<Nanos> durations(timeline.start.size());
  for (std::size_t id = 0; id < durations.size(); ++id)
    durations[id] = timeline.end[id] - timeline.start[id];
  return durations;
}

Timeline replay(const Program& program, const Timeline& timeline) {
  return simulate(program, collect_durations(timeline));
}

namespace {

/// Returns the durations of all instructions. That of an op includes the gap before it if the
/// message with its input had to wait for the previous op: its recorded arrival is then only a
/// bound, and the rank's host may have been posting other messages.
std::vector<Nanos> collect_explained(const Program& program, const Timeline& timeline) {
  std::vector<Nanos> durations = collect_durations(timeline);
  const std::vector<bool> waits = find_waiting_messages({program, timeline});
  std::vector<Nanos> lane_end(program.lanes.size(), -1);
  for (InstructionId id = 0; id < program.size(); ++id) {
    const std::uint32_t lane = program.instructions[id].lane;
    if (lane == kNoLane) continue;
    const Nanos free = std::exchange(lane_end[lane], timeline.end[id]);
    bool has_waiting = false;
    Nanos ready = free;
    for (const InstructionId on : program.dependencies_of(id)) {
      has_waiting = has_waiting || (waits[on] && timeline.end[on] == free);
      ready = std::max(ready, timeline.end[on]);
    }
    if (has_waiting) durations[id] += std::max<Nanos>(0, timeline.start[id] - ready);
  }
  return durations;
}

}  // namespace

double replay_error(const Program& program, const Timeline& timeline) {
  const StepBounds measured = find_step_bounds(timeline);
  const StepBounds replayed =
      find_step_bounds(simulate(program, collect_explained(program, timeline)));
  const auto span = static_cast<double>(measured.end - measured.start);
  if (span == 0) return 0;
  return std::abs(static_cast<double>(replayed.end - replayed.start) - span) / span;
}

}  // namespace bubblescope::inline sim

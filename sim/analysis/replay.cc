// Replays a Timeline in the simulator.
#include "sim/analysis/replay.h"

#include <cmath>

#include "sim/analysis/idle.h"
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

double replay_error(const Program& program, const Timeline& timeline) {
  const StepBounds measured = find_step_bounds(timeline);
  const StepBounds replayed = find_step_bounds(replay(program, timeline));
  const auto span = static_cast<double>(measured.end - measured.start);
  if (span == 0) return 0;
  return std::abs(static_cast<double>(replayed.end - replayed.start) - span) / span;
}

}  // namespace bubblescope::inline sim

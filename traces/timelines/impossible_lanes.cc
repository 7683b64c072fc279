// Sums the work and the gaps of each lane.
#include "traces/timelines/impossible_lanes.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "sim/ir/counted.h"
#include "sim/ir/range.h"
#include "sim/ir/units.h"

namespace bubblescope::traces {

std::optional<std::string> find_impossible_lane(const Program& program, const Timeline& timeline) {
  const Nanos step = compute_makespan(timeline);
  if (step > kMaxNanos / std::max(1, program.ranks))
    return fmt::format("the step takes {}, which no step of {} does; are these nanoseconds?",
                       to_text(step), counted(program.ranks, "rank"));
  std::vector<Nanos> left(program.lanes.size(), step);
  for (InstructionId id = 0; id < program.size(); ++id) {
    const std::uint32_t lane = program.instructions[id].lane;
    if (lane == kNoLane) continue;
    left[lane] -= timeline.end[id] - timeline.start[id] + timeline.gap_before(id);
    if (left[lane] < 0)
      return fmt::format("the ops of lane {}{} take longer than the whole step, {}; they overlap",
                         lane, timeline.gaps.empty() ? "" : " and the gaps before them",
                         to_text(step));
  }
  return {};
}

}  // namespace bubblescope::traces

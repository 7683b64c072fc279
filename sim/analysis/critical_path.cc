// Walking a Program backwards.
#include "sim/analysis/critical_path.h"

#include <algorithm>
#include <limits>
#include <optional>

namespace bubblescope {

namespace {

constexpr InstructionId kNone = 0xffffffffu;

std::vector<InstructionId> predecessors_in_lane(const Program& program) {
  std::vector<InstructionId> last(program.lanes.size(), kNone);
  std::vector<InstructionId> previous(program.size(), kNone);
  for (InstructionId id = 0; id < program.size(); ++id) {
    const std::uint32_t lane = program.instructions[id].lane;
    if (lane == kNoLane) continue;
    previous[id] = last[lane];
    last[lane] = id;
  }
  return previous;
}

/// What held an instruction up: whatever ended last before it, its own lane first.
InstructionId holder(const Program& program, const Timeline& timeline, InstructionId id,
                     InstructionId previous_in_lane) {
  InstructionId latest = previous_in_lane;
  for (const InstructionId dependency : program.dependencies_of(id))
    if (latest == kNone || timeline.end[dependency] > timeline.end[latest]) latest = dependency;
  return latest;
}

}  // namespace

std::vector<InstructionId> find_critical_path(const Program& program, const Timeline& timeline) {
  std::vector<InstructionId> path;
  if (program.size() == 0) return path;
  const std::vector<InstructionId> previous = predecessors_in_lane(program);
  const auto last = std::max_element(timeline.end.begin(), timeline.end.end());
  auto id = static_cast<InstructionId>(last - timeline.end.begin());
  while (id != kNone) {
    path.push_back(id);
    id = holder(program, timeline, id, previous[id]);
  }
  std::reverse(path.begin(), path.end());
  return path;
}

std::vector<Nanos> compute_slack(const Program& program, const Timeline& timeline) {
  std::vector<Nanos> slack(program.size());
  if (program.size() == 0) return slack;
  const Nanos step_end = *std::max_element(timeline.end.begin(), timeline.end.end());
  std::vector<Nanos>& latest_end = slack;
  std::fill(latest_end.begin(), latest_end.end(), step_end);
  std::vector<Nanos> next_start(program.lanes.size(), step_end);
  for (InstructionId id = program.size(); id-- > 0;) {
    const std::uint32_t lane = program.instructions[id].lane;
    if (lane != kNoLane) latest_end[id] = std::min(latest_end[id], next_start[lane]);
    const Nanos latest_start = latest_end[id] - (timeline.end[id] - timeline.start[id]);
    if (lane != kNoLane) next_start[lane] = latest_start;
    for (const InstructionId dependency : program.dependencies_of(id))
      latest_end[dependency] = std::min(latest_end[dependency], latest_start);
    slack[id] = latest_end[id] - timeline.end[id];
  }
  return slack;
}

}  // namespace bubblescope

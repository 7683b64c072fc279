// Walks a Program backwards.
#include "sim/analysis/critical_path.h"

#include <algorithm>
#include <optional>

#include "sim/analysis/holder.h"

namespace bubblescope {

std::vector<InstructionId> find_critical_path(const Program& program, const Timeline& timeline) {
  std::vector<InstructionId> path;
  if (program.size() == 0) return path;
  const Holders holders(program, timeline);
  const auto last = std::max_element(timeline.end.begin(), timeline.end.end());
  std::optional<InstructionId> id = static_cast<InstructionId>(last - timeline.end.begin());
  for (; id; id = holders.holder(*id))
    if (program.instructions[*id].role == Role::kWork) path.push_back(*id);
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

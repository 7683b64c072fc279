// Walks a Program backwards, from the instruction that ends last.
#include "sim/analysis/critical_path.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include "sim/analysis/blocker.h"

namespace bubblescope::inline sim {

namespace {

/// All instructions in reverse order: each comes after everything that it blocks.
std::vector<InstructionId> backwards(const Program& program, const Blockers& blockers) {
  std::vector<InstructionId> order(program.size());
  std::iota(order.rbegin(), order.rend(), InstructionId{0});
  if (blockers.has_unstated())
    std::sort(order.begin(), order.end(), [&](InstructionId left, InstructionId right) {
      return blockers.begins_before(right, left);
    });
  return order;
}

}  // namespace

InstructionId find_last(const Program& program, const Timeline& timeline) {
  InstructionId last = 0;
  for (InstructionId id = 1; id < program.size(); ++id) {
    const bool ends_later = timeline.end[id] > timeline.end[last];
    const bool ends_with = timeline.end[id] == timeline.end[last];
    if (ends_later ||
        (ends_with && program.instructions[id].rank > program.instructions[last].rank))
      last = id;
  }
  return last;
}

std::vector<InstructionId> find_critical_path(const Program& program, const Timeline& timeline,
                                              const Blockers& blockers) {
  std::vector<InstructionId> path;
  if (program.size() == 0) return path;
  std::optional<InstructionId> id = find_last(program, timeline);
  for (; id; id = blockers.blocker(*id))
    if (program.instructions[*id].role == Role::kWork && !is_arrival(program.instructions[*id]))
      path.push_back(*id);
  std::reverse(path.begin(), path.end());
  return path;
}

std::vector<PathPart> measure_path(const std::vector<InstructionId>& path,
                                   const Timeline& timeline) {
  std::vector<PathPart> parts;
  Nanos reached = find_step_bounds(timeline).start;
  for (const InstructionId id : path) {
    const Nanos start = std::max(reached, timeline.start[id]);
    const Nanos end = std::max(start, timeline.end[id]);
    parts.push_back({id, start - reached, end - start});
    reached = end;
  }
  return parts;
}

std::vector<Nanos> compute_slack(const Program& program, const Timeline& timeline,
                                 const Blockers& blockers) {
  std::vector<Nanos> slack(program.size());
  if (program.size() == 0) return slack;
  const Nanos step_end = *std::max_element(timeline.end.begin(), timeline.end.end());
  for (InstructionId id = 0; id < program.size(); ++id) slack[id] = step_end - timeline.end[id];
  for (const InstructionId id : backwards(program, blockers)) {
    const std::optional<InstructionId> blocker = blockers.blocker(id);
    if (!blocker) continue;
    const Nanos held_until = blockers.released_at(id, *blocker);
    blockers.for_each_awaited(id, [&](InstructionId earlier) {
      const Nanos spare = held_until - blockers.released_at(id, earlier);
      slack[earlier] = std::min(slack[earlier], slack[id] + spare);
    });
  }
  return slack;
}

}  // namespace bubblescope::inline sim

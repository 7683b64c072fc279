// Names each rank once, where it is.
#include "sim/ir/wait_cycle.h"

#include <algorithm>
#include <cstddef>

#include "sim/ir/after_edges.h"

namespace bubblescope::inline sim {

namespace {

/// Whether an instruction waits for its own rank, which has only come as far as the next one of
/// the cycle.
bool is_behind(const Instruction& blocked, const Instruction& next) {
  return next.lane != kNoLane && next.rank == blocked.rank;
}

Deadlock collect_waits(const WaitCycle& cycle, const std::vector<Instruction>& instructions,
                       bool once_per_rank) {
  Deadlock deadlock;
  for (std::size_t at = 0; at < cycle.size(); ++at) {
    const Instruction& blocked = instructions[cycle[at].first];
    if (blocked.lane == kNoLane) continue;
    const auto [next, next_awaited] = cycle[(at + 1) % cycle.size()];
    if (once_per_rank && is_behind(blocked, instructions[next])) continue;
    const bool through = instructions[next].lane == kNoLane;
    const Instruction& awaited = instructions[through ? next_awaited : cycle[at].second];
    const bool by_after_edge = !through && is_after_edge(blocked, awaited);
    deadlock.push_back({blocked.rank, blocked.op, awaited.rank, awaited.op, by_after_edge});
  }
  return deadlock;
}

}  // namespace

Deadlock make_deadlock(const WaitCycle& cycle, const std::vector<Instruction>& instructions) {
  Deadlock deadlock = collect_waits(cycle, instructions, true);
  if (deadlock.empty()) deadlock = collect_waits(cycle, instructions, false);
  std::rotate(deadlock.begin(),
              std::min_element(deadlock.begin(), deadlock.end(),
                               [](const Wait& a, const Wait& b) { return a.rank < b.rank; }),
              deadlock.end());
  return deadlock;
}

}  // namespace bubblescope::inline sim

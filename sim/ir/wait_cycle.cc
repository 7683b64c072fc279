// Names each rank once, at its most informative op.
#include "sim/ir/wait_cycle.h"

#include <algorithm>
#include <cstddef>

#include "sim/ir/after_edges.h"

namespace bubblescope::inline sim {

Deadlock make_deadlock(const WaitCycle& cycle, const std::vector<Instruction>& instructions) {
  Deadlock deadlock;
  for (std::size_t at = 0; at < cycle.size(); ++at) {
    const Instruction& blocked = instructions[cycle[at].first];
    if (blocked.lane == kNoLane) continue;
    const auto [next, next_awaited] = cycle[(at + 1) % cycle.size()];
    if (blocked.role == Role::kPost && next == cycle[at].second &&
        instructions[next].lane != kNoLane && instructions[next].rank == blocked.rank)
      continue;
    const bool through = instructions[next].lane == kNoLane;
    const Instruction& awaited = instructions[through ? next_awaited : cycle[at].second];
    const bool by_after_edge = !through && is_after_edge(blocked, awaited);
    deadlock.push_back({blocked.rank, blocked.op, awaited.rank, awaited.op, by_after_edge});
  }
  std::rotate(deadlock.begin(),
              std::min_element(deadlock.begin(), deadlock.end(),
                               [](const Wait& a, const Wait& b) { return a.rank < b.rank; }),
              deadlock.end());
  return deadlock;
}

}  // namespace bubblescope::inline sim

// A plain interpreter of orders, which knows nothing of Programs: every rank runs its ops in order,
// each when what it waits for has ended.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/ir/schedule.h"
#include "sim/ir/units.h"

namespace bubblescope::tests {

/// [op as text]: when it ended.
using OpEnds = std::map<std::string, Nanos>;

/// What an op waits for; empty until all of it has ended. Then the op lasts as long as `duration`.
struct OpRules {
  std::function<std::optional<Nanos>(const Op& op, const OpEnds& ends)> ready_at;
  std::function<Nanos(const Op& op)> duration;
};

/// Pairs count as two ops. Empty if ranks wait for each other.
inline std::optional<OpEnds> run_orders(const Schedule& schedule, const OpRules& rules) {
  OpEnds ends;
  std::vector<std::size_t> next(schedule.order.size(), 0);
  std::vector<Nanos> free(schedule.order.size(), 0);
  std::int64_t left = schedule.op_count();
  for (bool progress = true; progress && left > 0;) {
    progress = false;
    for (std::size_t rank = 0; rank < next.size(); ++rank) {
      if (next[rank] == schedule.order[rank].size()) continue;
      const Op& op = schedule.order[rank][next[rank]];
      const std::optional<Nanos> ready = rules.ready_at(op, ends);
      if (!ready) continue;
      free[rank] = ends[to_string(op)] = std::max(free[rank], *ready) + rules.duration(op);
      ++next[rank];
      --left;
      progress = true;
    }
  }
  return left > 0 ? std::nullopt : std::optional(std::move(ends));
}

}  // namespace bubblescope::tests

// The zero-bubble authors' heuristic for two chunks per rank in a V, which decides by the arrival
// times of inputs (Qi et al., "Zero Bubble Pipeline Parallelism", 2024, section 6).
#pragma once

#include <array>

#include "schedules/search/greedy_order.h"

namespace bubblescope::schedules {

/// Whether to fill a wait with a W that is longer than the wait, if waiting would make this the
/// rank with the most idle time.
struct VGreedyRule {
  bool fill_before_forward = true;
  bool fill_before_gradient = true;  ///< for chunk 1; for chunk 0 it is always filled
};

constexpr std::array<VGreedyRule, 4> all_v_greedy_rules() {
  return {{{true, true}, {false, true}, {true, false}, {false, false}}};
}

/// Warm-up F's of both chunks; then, per round, one I and at most one F on every rank. The whole is
/// repeated with each rank's final idle time as long as that shortens it. V placements and split
/// backwards only.
GreedyOrder v_greedy(const SearchProblem& problem, const VGreedyRule& rule);

}  // namespace bubblescope::schedules

// The heuristic of the zero-bubble authors for V-shaped placements with two chunks per rank. It
// decides by the arrival times of inputs (Qi et al., "Zero Bubble Pipeline Parallelism", 2024,
// section 6).
#pragma once

#include <array>

#include "schedules/search/greedy_order.h"

namespace bubblescope::schedules {

/// Whether a wait may be filled with a W that is longer than the wait, if waiting would make this
/// the rank with the most idle time.
struct VGreedyRule {
  bool fill_before_forward = true;
  bool fill_before_gradient = true;  ///< for chunk 1; for chunk 0 it is always filled
};

constexpr std::array<VGreedyRule, 4> all_v_greedy_rules() {
  return {{{true, true}, {false, true}, {true, false}, {false, false}}};
}

/// Every rank first runs warm-up F's of both chunks. Then each round runs one I and at most one F
/// on every rank. The whole is repeated with the idle times of the previous run as long as that
/// shortens the order. Requires a V-shaped placement and split backwards.
GreedyOrder v_greedy(const SearchProblem& problem, const VGreedyRule& rule);

}  // namespace bubblescope::schedules

// The zero-bubble authors' heuristic for two chunks per rank in a V: F, I and W by when inputs
// really arrive (Qi et al., "Zero Bubble Pipeline Parallelism", 2024, section 6).
#pragma once

#include <array>

#include "schedules/search/greedy_order.h"

namespace bubblescope {

/// Whether a wait that is too short for a W is filled with one nevertheless, where waiting would
/// make this the rank with the most idle time.
struct VGreedyRule {
  bool fill_before_forward = true;
  bool fill_before_gradient = true;  ///< of chunk 1; before chunk 0's it always is
};

constexpr std::array<VGreedyRule, 4> every_v_greedy_rule() {
  return {{{true, true}, {false, true}, {true, false}, {false, false}}};
}

/// Warm-up F's of both chunks; then, per round, one I and at most one F on every rank. The whole is
/// repeated with the idle time that each rank had in the end, as long as that makes it shorter.
/// V placements and split backwards only.
GreedyOrder v_greedy(const SearchProblem& problem, const VGreedyRule& rule);

}  // namespace bubblescope

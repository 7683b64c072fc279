// The heuristic of the zero-bubble authors for one stage per rank. It decides by the arrival times
// of inputs (Qi et al., "Zero Bubble Pipeline Parallelism", 2024, section 3 and appendix).
#pragma once

#include <array>

#include "schedules/search/greedy_order.h"

namespace bubblescope::schedules {

/// The heuristic's three choices; the paper tries all eight combinations.
struct GreedyRule {
  bool overrun_first_gradient = true;  ///< the last warm-up F may end after the first I could start
  bool delays_forwards = true;         ///< delays an F that would delay the next rank's I
  bool weights_first = true;           ///< fills a short wait with a W that makes it longer
};

constexpr std::array<GreedyRule, 8> all_greedy_rules() {
  std::array<GreedyRule, 8> rules;
  for (std::size_t at = 0; at < rules.size(); ++at)
    rules[at] = {(at & 4) == 0, (at & 2) == 0, (at & 1) == 0};
  return rules;
}

/// Every rank first runs warm-up F's until its first I can arrive. Then each round runs at most one
/// F and one I on every rank, with W's where they fit or where the cap requires memory. Stops early
/// when a rank's span reaches `too_long`. Requires one stage per rank and split backwards. O(ops).
GreedyOrder greedy_by_arrivals(const SearchProblem& problem, const GreedyRule& rule,
                               Nanos too_long);

}  // namespace bubblescope::schedules

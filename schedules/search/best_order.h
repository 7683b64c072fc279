// The best orders that the heuristics find for a search problem.
#pragma once

#include "schedules/search/order_pool.h"

namespace bubblescope::schedules {

/// A lower bound on the span of any order within the caps: a rank's work and, for linear
/// placements, the part of the wait for its first gradient that forwards cannot fill.
Nanos span_lower_bound(const SearchProblem& problem);

/// Where a search starts and when it may stop.
struct SearchPlan {
  SearchEffort effort = {};
  Nanos bound = 0;                     ///< a span this short is good enough
  std::vector<TokenOrder> known = {};  ///< orders to start from, besides the heuristics' own
  bool is_level = false;  ///< one of many caps; skips orders that do not depend on them
};

/// The best orders found, the best first. The search tries families of orders (list scheduling for
/// any placement, all warm-up lengths for linear ones, V-shaped building blocks), then improves the
/// best by local search. Every cap must be at least min_cap(), so that an order exists.
OrderPool search_orders(const SearchProblem& problem, const SearchPlan& plan);

/// The best order found under the caps or under smaller ones (CapLadder): a larger cap never gives
/// a longer order.
TokenOrder find_best_order(const SearchProblem& problem);

/// The best order found under exactly these caps, for schedules whose caps are part of their name.
TokenOrder find_best_order_under_caps(const SearchProblem& problem);

}  // namespace bubblescope::schedules

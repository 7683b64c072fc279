// The best order that the heuristics find for a search problem.
#pragma once

#include "schedules/search/search_problem.h"

namespace bubblescope {

/// A span that no order within the caps can beat: a rank's work and, on linear placements, the wait
/// for its first gradient that its forwards cannot fill.
Nanos least_span(const SearchProblem& problem);

/// For linear placements of one chunk and V placements of two: tries families of orders (list
/// scheduling, warm-ups of all lengths, V-shaped building blocks), then climbs from the best. The
/// effort is bounded by a number of timed ops, not by a clock: the result is always the same.
/// Every cap must be at least least_cap(); then there is always an order.
TokenOrder best_order(const SearchProblem& problem);

}  // namespace bubblescope

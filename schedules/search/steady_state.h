// Steady-state orders: the shortest period between micro-batches.
#pragma once

#include <vector>

#include "schedules/search/search_effort.h"
#include "schedules/search/search_problem.h"

namespace bubblescope::schedules {

/// An order of the problem with a steady state, and the time that each further micro-batch would
/// take.
struct SteadyOrder {
  TokenOrder order;
  Nanos period = 0;  ///< rounded up
  Nanos bound = 0;   ///< period_lower_bound()
};

/// A lower bound on the period within the caps: a rank's own work; and the memory-time of a
/// micro-batch on a rank, from its F until other ranks have answered, over the rank's cap (Little's
/// law).
Nanos period_lower_bound(const SearchProblem& problem);

/// The problem with just enough micro-batches to show a steady state with its warm-up and
/// cool-down; never more than the problem has.
SearchProblem make_brief_step(const SearchProblem& problem);

/// Searches the brief step, repeats what every rank does around some moment, and keeps the fastest
/// repetition. `known` are orders of the brief step to start from.
SteadyOrder find_steady_order(const SearchProblem& problem, std::vector<TokenOrder> known,
                              const SearchEffort& effort);

}  // namespace bubblescope::schedules

// Orders that are good for as long as one likes: the shortest period between micro-batches.
#pragma once

#include <vector>

#include "schedules/search/search_effort.h"
#include "schedules/search/search_problem.h"

namespace bubblescope {

/// An order of the problem with a steady state, and what each micro-batch more would take.
struct SteadyOrder {
  TokenOrder order;
  Nanos period = 0;  ///< rounded up
  Nanos bound = 0;   ///< least_period()
};

/// No order within the caps can take less per micro-batch: a rank's own work; and what a rank must
/// hold of each, from its F until others have answered, over what it may hold (Little's law).
Nanos least_period(const SearchProblem& problem);

/// As many micro-batches as show a steady state and how it is entered and left; never more than the
/// problem has.
SearchProblem brief_step(const SearchProblem& problem);

/// Searches the brief step, repeats what every rank does around some moment, and keeps what repeats
/// fastest. `known` are orders of the brief step to start from.
SteadyOrder find_steady_order(const SearchProblem& problem, std::vector<TokenOrder> known,
                              const SearchEffort& effort);

}  // namespace bubblescope

// Branch and bound over orders: finds one that is better than a value, or proves that there is
// none.
#pragma once

#include <optional>

#include "schedules/search/mixed_backward.h"
#include "schedules/search/search_effort.h"
#include "schedules/search/search_problem.h"

namespace bubblescope::schedules {

/// The result of an exact search.
struct ExactAnswer {
  std::optional<MixedOrder> order;  ///< an order that takes at most `value`
  std::int64_t ops = 0;             ///< the effort it took
  bool complete = false;  ///< whether the search finished: then no order means that none exists
};

/// True if the search can be complete: each rank's first op starts at a time that no order changes,
/// or only the step's length counts.
bool can_be_exact(const SearchProblem& problem);

/// Looks for an order whose longest span (or step) is at most `value`.
///
/// Consider all ops that could run next; let the one that could end first be on rank r and end at
/// C. In some best order the next op of r starts before C: otherwise that one could be moved in
/// front of it at no cost (Giffler and Thompson, 1960). So the search branches over these ops only
/// and, where moving a forward to the front could take another one's memory, also over excluding
/// it. A prefix is pruned if it fails the DeadlineTest, or if a failed prefix of the same ops had
/// all its results no later. `ops` bounds the effort, in ops visited.
ExactAnswer find_order_within(const SearchProblem& problem, Nanos value, std::int64_t ops,
                              const StopRequest& stop = {});

/// The same search for problems in which every backward may be full or split. A full backward
/// counts as its I and the oldest W that is left; all W are alike, so counts still describe a
/// prefix completely. Of the two choices for a gradient, one could replace the other at the front
/// at no cost. Prefixes are pruned by the DeadlineTest of MixedProblem::relaxed().
ExactAnswer find_mixed_order_within(const MixedProblem& problem, Nanos value, std::int64_t ops,
                                    const StopRequest& stop = {});

}  // namespace bubblescope::schedules

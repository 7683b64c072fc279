// Branch and bound over orders: finds one that is better than a value, or proves that there is
// none.
#pragma once

#include <optional>

#include "schedules/search/mixed_backward.h"
#include "schedules/search/search_effort.h"
#include "schedules/search/search_problem.h"

namespace bubblescope {

/// What an exact search found out.
struct ExactAnswer {
  std::optional<MixedOrder> order;  ///< one that takes at most the value asked for
  std::int64_t ops = 0;             ///< the effort it took
  bool complete = false;  ///< whether all orders were looked at: then no order means there is none
};

/// True where the search can be complete: where each rank starts its first op at a time that no
/// order changes, or only the step's length counts.
bool can_be_exact(const SearchProblem& problem);

/// Looks for an order whose longest span (or step) is at most `value`.
///
/// Of all ops that could run next, let the one that could end first be on rank r and end at C. In
/// some best order the next op of r starts before C: else that one could be put in front of it for
/// free (Giffler and Thompson, 1960). So it branches over these ops only, and where moving a
/// forward to the front could take another one's memory, also over not having it next. A prefix is
/// given up when it fails the DeadlineTest, or when one of the same ops has failed whose results
/// were all there no later. `ops` bounds the effort, in ops looked at.
ExactAnswer find_order_within(const SearchProblem& problem, Nanos value, std::int64_t ops,
                              const StopRequest& stop = {});

/// The same where every backward may be full or split. A full backward counts as its I and the
/// oldest W that is left: these are alike, so that counts still say everything about a prefix. Of
/// the two choices for a gradient, one could be put in front for free in place of the other. The
/// DeadlineTest is that of MixedProblem::relaxed().
ExactAnswer find_mixed_order_within(const MixedProblem& problem, Nanos value, std::int64_t ops,
                                    const StopRequest& stop = {});

}  // namespace bubblescope

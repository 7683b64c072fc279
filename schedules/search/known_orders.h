// Known orders: the registered schedules as starting points of a search.
#pragma once

#include <cstdint>
#include <vector>

#include "schedules/search/search_problem.h"

namespace bubblescope::schedules {

/// The orders of all registered schedules that have the problem's placement, keep micro-batches in
/// order and can be built for the request's shape. If the problem splits backwards and a schedule
/// does not, W follows I at once, and vice versa. Excludes searched schedules.
std::vector<TokenOrder> collect_known_orders(const SearchProblem& problem,
                                             const ScheduleRequest& request);

/// A choice of the schedules that search for an order: all, or those whose caps are part of their
/// name.
enum class SearchedUnder : std::uint8_t { kAnyCaps, kOwnCaps };

/// The orders of the registered schedules that search for one, under the request's costs and caps.
/// Only for one stage per rank and for V's, because those schedules have these placements.
std::vector<TokenOrder> collect_searched_orders(const SearchProblem& problem,
                                                const ScheduleRequest& request, SearchedUnder caps);

}  // namespace bubblescope::schedules

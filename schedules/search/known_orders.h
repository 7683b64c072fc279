// What is known already: the registered schedules as starts of a search.
#pragma once

#include <vector>

#include "schedules/search/search_problem.h"

namespace bubblescope {

/// The orders of all registered schedules that lie on the problem's placement, keep micro-batches
/// in order and can be built for the request's shape; where the problem splits backwards and they
/// do not, W follows I at once, and the other way round. Schedules that are searched for are left
/// out.
std::vector<TokenOrder> known_orders(const SearchProblem& problem, const ScheduleRequest& request);

}  // namespace bubblescope

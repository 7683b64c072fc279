// The shortest order of a small search problem, by enumeration.
#pragma once

#include "schedules/search/search_problem.h"

namespace bubblescope::tests {

/// The least span, or length of the step, over all orders within the caps that keep micro-batches
/// in order; a rank's first op starts as soon as it can. Orders whose ops so far end no earlier
/// than those of another with the same ops are not gone on with, nor those that leave a rank too
/// much work: nothing else is left out. For up to about 24 ops.
Nanos shortest_by_trying(const schedules::SearchProblem& problem);

}  // namespace bubblescope::tests

// Orders of F and I for stages that lie one per rank.
#pragma once

#include <vector>

#include "schedules/search/weight_fill.h"

namespace bubblescope {

/// Warm-up forwards, then gradients and forwards in turn. What the hand-made schedules and the
/// published heuristics differ in is the warm-up: here it goes from 1F1B's p-r forwards, over as
/// many as fit before the first gradient can arrive, to twice that; never more than the cap holds.
std::vector<Skeleton> linear_skeletons(const SearchProblem& problem);

}  // namespace bubblescope

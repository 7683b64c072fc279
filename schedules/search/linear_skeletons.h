// Orders of F and I for one stage per rank.
#pragma once

#include <vector>

#include "schedules/search/weight_fill.h"

namespace bubblescope::schedules {

/// Warm-up forwards, then gradients and forwards in turn. The handcrafted schedules and published
/// heuristics differ in the warm-up: here it ranges from 1F1B's p-r forwards, over the number that
/// fits before the first gradient can arrive, to twice that; never more than the cap allows.
std::vector<Skeleton> make_linear_skeletons(const SearchProblem& problem);

}  // namespace bubblescope::schedules

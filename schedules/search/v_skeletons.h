// Orders of F and I for V placements with ZB-V's rhythm.
#pragma once

#include <vector>

#include "schedules/search/weight_fill.h"

namespace bubblescope {

/// ZB-V's phases, all of them shortened alike: from one micro-batch in flight over ZB-V itself,
/// which holds 2p chunks, to three halves of it. Split backwards only.
std::vector<Skeleton> v_skeletons(const SearchProblem& problem);

}  // namespace bubblescope

// Orders of F and I for V placements, following ZB-V.
#pragma once

#include <vector>

#include "schedules/search/weight_fill.h"

namespace bubblescope::schedules {

/// ZB-V's phases, shortened by the same amount: from one micro-batch in flight, over ZB-V itself,
/// which holds 2p chunks, to one and a half times that. Split backwards only.
std::vector<Skeleton> make_v_skeletons(const SearchProblem& problem);

}  // namespace bubblescope::schedules

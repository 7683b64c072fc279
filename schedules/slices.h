// Sequences cut into slices, each of which goes through the pipeline like a micro-batch. A token
// looks back: slices go forward from first to last, and backward from last to first.
#pragma once

#include "schedules/rank_order.h"
#include "sim/model/schedule_def.h"

namespace bubblescope {

/// The shape in which every slice counts as a micro-batch.
Shape count_slices(Shape shape);

/// From visits of such a shape to visits of slices: micro-batch u of them is slice u mod n of
/// micro-batch u / n on its way forward, and slice n-1 - u mod n on its way backward.
Visits visits_of_slices(Visits visits, std::int32_t slices);

}  // namespace bubblescope

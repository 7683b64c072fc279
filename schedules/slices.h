// Slices of sequences, each of which passes the pipeline like a micro-batch. Causal attention makes
// slices run forward from first to last, and backward from last to first.
#pragma once

#include "schedules/rank_order.h"
#include "sim/model/schedule_def.h"

namespace bubblescope::schedules {

/// The shape in which every slice counts as a micro-batch.
Shape count_slices(Shape shape);

/// Converts visits of such a shape to visits of slices: micro-batch u becomes slice u mod n of
/// micro-batch u / n in the forward, and slice n-1 - u mod n in the backward.
Visits visits_of_slices(Visits visits, std::int32_t slices);

}  // namespace bubblescope::schedules

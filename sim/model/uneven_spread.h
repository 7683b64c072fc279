// Uniform costs over stages that are not alike: those with more layers take longer.
#pragma once

#include <cstdint>
#include <span>

#include "sim/ir/schedule.h"
#include "sim/model/cost_model.h"

namespace bubblescope {

/// Spreads the work of all stages together, which is what spread() gives them, over the stages in
/// proportion to their weights, to the nanosecond: nothing is lost. `weights` has one entry per
/// stage of a pipeline, none negative, not all 0.
CostModel spread_unevenly(const UniformCost& cost, const Schedule& schedule,
                          std::span<const std::int64_t> weights);

}  // namespace bubblescope

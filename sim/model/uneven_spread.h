// Uniform costs over stages of different sizes: stages with more layers take longer.
#pragma once

#include <cstdint>
#include <span>

#include "sim/ir/schedule.h"
#include "sim/model/cost_model.h"

namespace bubblescope::inline sim {

/// Distributes the total work of spread() over the stages in proportion to their weights; the
/// nanoseconds add up exactly. `weights` has one entry per stage of a pipeline, none negative, not
/// all 0.
CostModel spread_unevenly(const UniformCost& cost, const Schedule& schedule,
                          std::span<const std::int64_t> weights);

}  // namespace bubblescope::inline sim

// Costs and memory of stages for schedules that search for an order.
#pragma once

#include "sim/ir/schedule.h"
#include "sim/model/schedule_def.h"
#include "sim/predict/config.h"

namespace bubblescope::tools {

/// Returns a schedule without an order, whose stages go round the ranks; each rank has a shard of
/// the output layer where the schedule splits that.
Schedule place_in_loop(const ScheduleDef& def, const Shape& shape);

/// Returns the request with the costs of its stages, and with their bytes if its caps are in bytes
/// or a model's devices are its caps. Where gradients may shrink, costs and bytes are those of the
/// largest with which some order fits.
ScheduleRequest price_stages(ScheduleRequest request, const ScheduleDef& def, Config config);

}  // namespace bubblescope::tools

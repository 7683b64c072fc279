// Memory in bytes for schedules that search for an order.
#pragma once

#include <vector>

#include "sim/ir/schedule.h"
#include "sim/model/memory_model.h"
#include "sim/model/schedule_def.h"
#include "sim/predict/config.h"

namespace bubblescope::tools {

/// Returns a schedule without an order, with the stages where a schedule that searches places them.
Schedule place_searched_stages(const ScheduleDef& def, const Shape& shape);

/// Returns the request with this memory and each rank's usable bytes as its cap, if the schedule
/// searches under caps and its smallest order fits; the same request otherwise.
ScheduleRequest cap_to_devices(ScheduleRequest request, const ScheduleDef& def, MemoryModel memory,
                               std::vector<Bytes> usable);

/// Returns the request with the bytes of its stages, if its caps are in bytes or a model's devices
/// are its caps. Where gradients may shrink, they do if the schedule does not fit otherwise.
ScheduleRequest limit_bytes(ScheduleRequest request, const ScheduleDef& def, const Config& config);

}  // namespace bubblescope::tools

// Caps of schedules that search for an order: the memory of a model's devices.
#pragma once

#include "sim/model/memory_model.h"
#include "sim/model/schedule_def.h"
#include "sim/predict/config.h"

namespace bubblescope::tools {

/// Returns the request with the devices' usable memory as its caps, if the schedule searches under
/// caps and its smallest order fits; the same request otherwise. `memory` has the bytes of
/// activations and states.
ScheduleRequest cap_to_devices(ScheduleRequest request, const ScheduleDef& def, MemoryModel memory,
                               Bytes usable);

/// The same for the model of a Config; where gradients may shrink, with the smallest ones if the
/// schedule does not fit otherwise.
ScheduleRequest cap_to_devices(ScheduleRequest request, const ScheduleDef& def, Config config);

}  // namespace bubblescope::tools

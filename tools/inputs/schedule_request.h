// The request to a schedule's builder: shape, costs and memory, as they follow from the inputs.
#pragma once

#include <cstdint>
#include <string>

#include "sim/ir/size_limits.h"
#include "sim/model/schedule_def.h"
#include "tools/flags/options.h"
#include "tools/inputs/inputs.h"

namespace bubblescope::tools {

/// Returns -m, or the number that follows from --global-batch-size. `schedule` is a name or a path,
/// for the Error that is thrown where neither is given, or both disagree.
std::int32_t microbatches_of(const PredictInputs& inputs, const std::string& schedule);

/// Removes the flags that this schedule does not use: they are meant for the others.
ShapeOptions drop_unused_flags(ShapeOptions shape, const ScheduleDef& def);

/// Makes the request for a schedule's builder. Throws Error where --pp or -m is missing, or the
/// shape has more ops than `max_ops`.
ScheduleRequest make_request(const ScheduleDef& def, const PredictInputs& inputs,
                             std::int64_t max_ops = kMaxOps);

}  // namespace bubblescope::tools

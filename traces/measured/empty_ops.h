// Finds ops that take no time where others like them do: their end was lost, or moved.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "traces/files/trace_format.h"

namespace bubblescope::traces {

/// Describes, in a whole sentence, the first op that takes less than a hundredth of the median of
/// its stage and kind; nullopt where there is none.
std::optional<std::string> describe_empty_op(std::span<const MeasuredStep> steps);

/// Says that the median op is shorter than any op of a pipeline takes on a device, so that times
/// are of another unit than microseconds; nullopt where it is not.
std::optional<std::string> describe_short_ops(std::span<const MeasuredStep> steps);

}  // namespace bubblescope::traces

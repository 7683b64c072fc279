// Removes recorders from a trace.
#pragma once

#include <vector>

#include "traces/files/trace_format.h"

namespace bubblescope::traces {

/// Keeps the recorders that are chosen ([recorder]), with their ops and activities.
ObservedTrace keep_recorders(ObservedTrace trace, const std::vector<bool>& is_kept);

}  // namespace bubblescope::traces

// Reads back Chrome traces that this program wrote, exact to the nanosecond.
#pragma once

#include <string>

#include "traces/files/trace_format.h"
#include "traces/measured/chrome_events.h"

namespace bubblescope::traces {

/// Whether we wrote the file, with the schedule in it.
bool is_own_trace(const ChromeEvents& events);

/// Returns the step as it was written. Throws Error for an illegal schedule, and for an op of the
/// schedule that the trace lacks.
MeasuredStep read_own_trace(const ChromeEvents& events, const std::string& file);

}  // namespace bubblescope::traces

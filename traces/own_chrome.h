// Reading back the Chrome traces that this program wrote: whole, to the nanosecond.
#pragma once

#include <string>

#include "traces/chrome_events.h"
#include "traces/trace_format.h"

namespace bubblescope {

/// Whether --trace wrote it, with the schedule in it.
bool is_own_trace(const ChromeEvents& events);

/// The step as it was written. Throws Error for a schedule that is not legal, and for an op of it
/// that the trace lacks.
MeasuredStep read_own_trace(const ChromeEvents& events, const std::string& file);

}  // namespace bubblescope

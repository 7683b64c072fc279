// Reads a PyTorch profile as the ops of one rank: its annotations (PP:2F0, Forward 3), or where
// there are none (Schedule1F1B), the stretches between messages.
#pragma once

#include <string>

#include "traces/files/trace_format.h"
#include "traces/measured/chrome_events.h"

namespace bubblescope::traces {

/// Returns the rank's ops without the waiting that annotations include, in the steps that
/// ProfilerStep#N marks. Throws Error that lists what the file has instead of a pipeline's ops.
ObservedTrace read_profile(ChromeEvents events, const std::string& file, NameMatcher& names);

}  // namespace bubblescope::traces

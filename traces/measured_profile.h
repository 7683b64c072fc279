// A profile of PyTorch as the ops of one rank: what is annotated (PP:2F0, Forward 3), and where
// nothing is (Schedule1F1B), what lies between the messages.
#pragma once

#include <string>

#include "traces/chrome_events.h"
#include "traces/trace_format.h"

namespace bubblescope {

/// The rank's ops without the waiting that annotations enclose, in the steps that ProfilerStep#N
/// marks. Throws Error with what the file has instead of a pipeline's ops.
ObservedTrace read_profile(ChromeEvents events, const std::string& file);

}  // namespace bubblescope

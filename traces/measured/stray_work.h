// Finds work between ops that no op contains, which would count as idle time:
//
//   |0F0| |dw| |0B0|        a weight gradient whose name is not that of an op
#pragma once

#include <optional>
#include <string>

#include "traces/files/trace_format.h"

namespace bubblescope::traces {

/// Names the slices that lie between the ops of a step, on threads that run ops, and take over 1 %
/// of the pipeline's time; nullopt if there are none. Messages, waiting and the known work around
/// ops do not count. The ops have their steps.
std::optional<std::string> describe_stray_work(const ObservedTrace& trace);

}  // namespace bubblescope::traces

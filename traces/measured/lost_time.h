// Time of a rank between its ops that neither an op nor a message stands for.
#pragma once

#include <string>
#include <vector>

#include "traces/files/trace_format.h"
#include "traces/measured/chrome_events.h"

namespace bubblescope::traces {

/// Describes data that is loaded between ops, calls that post messages and take long, and receives
/// that are waited for ahead of their ops. `ops` are those of the profile, with their messages.
std::vector<LostTime> find_lost_time(const ChromeEvents& events, const std::vector<ObservedOp>& ops,
                                     const std::string& file);

}  // namespace bubblescope::traces

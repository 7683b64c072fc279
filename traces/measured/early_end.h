// Recordings that end before the step that they mark.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "traces/files/trace_format.h"
#include "traces/measured/chrome_events.h"
#include "traces/measured/step_marks.h"

namespace bubblescope::traces {

/// Says, in a whole sentence without the file, that more than half of the last marked step has no
/// event.
std::optional<std::string> describe_early_end(const ChromeEvents& events, const StepMarks& marks,
                                              const std::vector<ObservedOp>& ops);

}  // namespace bubblescope::traces

// Finds what a rank of a profile does besides the ops of the pipeline.
//
//   |=== ops ===| all-reduce |optimizer|       of the device: what was launched in a step and runs
//                                              before the first or after the last op of its rank
#pragma once

#include <cstdint>
#include <vector>

#include "traces/files/trace_format.h"
#include "traces/measured/chrome_events.h"
#include "traces/measured/step_marks.h"

namespace bubblescope::traces {

/// The name of what updates weights.
inline constexpr const char* kOptimizer = "optimizer";

/// The whole steps, and the activities of one rank before the first and after the last of its ops:
/// its collectives by name, the optimizer and other kernels, on the device where the profile has
/// it. Where the device shows no optimizer, the host's range counts as one; a data loader has no
/// other. Activities in no marked step are left out, because their step is unknown.
std::vector<ObservedActivity> find_profile_outer_activities(const ChromeEvents& events,
                                                            const StepMarks& marks,
                                                            const std::vector<ObservedOp>& ops,
                                                            std::int32_t replica);

}  // namespace bubblescope::traces

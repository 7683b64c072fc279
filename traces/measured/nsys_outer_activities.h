// Finds what a process of an Nsight Systems recording runs in its steps besides the ops of the
// pipeline.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "traces/files/trace_format.h"
#include "traces/measured/nsys_ranges.h"
#include "traces/measured/nsys_recording.h"

namespace bubblescope::traces {

/// The device's activities that the process launches in a step and that run, in part at least,
/// before the first of its ops or after the last: its collectives by name, and other kernels.
/// Messages are none. `ops` are those of the process.
std::vector<ObservedActivity> find_nsys_outer_activities(const NsysRecording& recording,
                                                         std::int64_t process,
                                                         std::span<const StepRange> marks,
                                                         std::span<const ObservedOp> ops);

}  // namespace bubblescope::traces

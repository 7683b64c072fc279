// Slices of Chrome traces that hold the ops of a step, each of its own:
//
//   |------------ step_3 ------------|  |------------ step_4 ------------|
//   |0F0| |0F1|  |0B0| |0B1|            |0F0| |0F1|  |0B0| |0B1|
#pragma once

#include <vector>

#include "traces/files/trace_format.h"

namespace bubblescope::traces {

/// Adds those of `around_ops`, slices of ranks that hold ops, of which each holds all ops of one
/// step and of no other, if each step of a rank has one and their names mark steps. A step then
/// takes at least as long. Others, of which a rank must have several, show whether it may. Those
/// that state a step and hold ops of several are named in a note. The ops have their steps.
ObservedTrace with_step_ranges(ObservedTrace trace, std::vector<ObservedActivity> around_ops);

}  // namespace bubblescope::traces

// Slices of Chrome traces that hold the ops of a step, each of its own:
//
//   |------------ step_3 ------------|  |------------ step_4 ------------|
//   |0F0| |0F1|  |0B0| |0B1|            |0F0| |0F1|  |0B0| |0B1|
#pragma once

#include <vector>

#include "traces/files/trace_format.h"

namespace bubblescope::traces {

/// Adds those of `around_ops`, slices of ranks that hold ops, that mark steps by their names, if
/// each step of a rank has one that holds all its ops and no other. A step then takes at least as
/// long. Of those with other names, adds a reservation where one is 1 % longer than what it holds;
/// a rank must then have several steps. The ops have their steps.
ObservedTrace with_step_ranges(ObservedTrace trace, std::vector<ObservedActivity> around_ops);

}  // namespace bubblescope::traces

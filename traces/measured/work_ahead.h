// Work that runs ahead of its step, beside the ops of the steps before it:
//
//   |-- ops of step 3 --|        |-- ops of step 4 --|
//          |load 4|                 |load 5|
#pragma once

#include "traces/files/trace_format.h"

namespace bubblescope::traces {

/// Cuts activities where the ops of an earlier step of their replica end, on any rank of their
/// file, and removes those that have ended by then: a step does not begin with what ran ahead of
/// it. Every activity has a step.
ObservedTrace without_work_ahead(ObservedTrace trace);

}  // namespace bubblescope::traces

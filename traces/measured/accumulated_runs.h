// Steps in which a schedule runs several times, to accumulate gradients: each run numbers its
// micro-batches from 0.
//
//   rank 0:  F0 F1 B0 B1 F0 F1 B0 B1   ->   F0 F1 B0 B1 F2 F3 B2 B3
#pragma once

#include <map>

#include "traces/files/trace_format.h"
#include "traces/measured/group_steps.h"

namespace bubblescope::traces {

/// Numbers the micro-batches of a step on from run to run, if all ranks ran all of their ops
/// equally often, backwards among them, and each rank ended a run before it began the next one.
/// Other steps, in which an op is seen twice for another reason, stay as they are.
void number_accumulated_runs(std::map<StepKey, StepOps>& steps);

}  // namespace bubblescope::traces

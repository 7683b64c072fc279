// Steps of ops whose micro-batches are numbered through all steps, and which state no step:
//
//   rank 0   F0 F1 B0 B1 F2 F3 B2 B3      two steps of two micro-batches: between B1 and F2 none
//   rank 1   F0 B0 F1 B1 F2 B2 F3 B3      is in flight on any rank
#pragma once

#include "traces/files/trace_format.h"

namespace bubblescope::traces {

/// Splits such a step where no micro-batch is in flight on any rank, if that gives steps with
/// equally many micro-batches, but for the first and the last of several, which may be cut. Some
/// may lack micro-batches or ranks. Forwards without backwards are in flight until they have passed
/// all ranks; where ranks have no common clock that shows it, and all pause at the same
/// micro-batches, adds a reservation. Does nothing where ops state their steps or repeat, and where
/// each micro-batch would be a step: one may as well run after another.
ObservedTrace split_running_microbatches(ObservedTrace trace);

}  // namespace bubblescope::traces

// Steps of ranks that have files of their own and state none.
//
//   rank0.json   0F0 0B0  0F0 0B0  0F0 0B0
//   rank1.json            1F0 1B0  1F0 1B0    its first step is the second one of rank 0
#pragma once

#include "traces/files/trace_format.h"

namespace bubblescope::traces {

/// Where steps are only counted, file by file, and ranks have different numbers of them or steps
/// with different numbers of ops, counts them by the times of all files, if that does not
/// contradict the order of the pipeline: then the files share a clock. Otherwise adds a reservation
/// where ranks have different numbers of steps.
ObservedTrace count_over_files(ObservedTrace trace);

}  // namespace bubblescope::traces

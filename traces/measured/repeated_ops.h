// Explains ops that a rank runs more than once in a step.
//
//   F0 F1 F0 F1 B0 B1 B0 B1    chunks: the rank runs two stages, and no op states its own
//   F0 F1 F0 B0 F1 B1          recomputation: a forward runs again directly before its backward
//   F0 F1 B0 B1 F0 F1 B0 B1    several runs of the pipeline
// Ops that overlap are those of several ranks that share a thread.
#pragma once

#include <string>
#include <vector>

#include "traces/files/trace_format.h"

namespace bubblescope::traces {

/// Throws Error, with the cause and the remedy, where a rank runs an op twice. Lanes ([rank]) are
/// in order of time, and overlaps are not yet cut.
void expect_one_pipeline(const std::vector<std::vector<ObservedOp>>& lanes,
                         const std::string& where);

}  // namespace bubblescope::traces

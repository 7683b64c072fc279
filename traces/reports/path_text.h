// Writes the critical path in a few lines.
#pragma once

#include <string>

#include "traces/files/format.h"

namespace bubblescope::traces {

/// critical path: 22 ops, 6 hops:  F 11 ms  B 22 ms  messages 0 ms  most on rank 3: 24 ms
///   0F0 → 1F0 → 2F0 → 3F0 … 3B7 (16 ops, 24 ms) → 2B7 → 1B7 → 0B7
///
/// An arrow is a hop to another rank; consecutive ops of one rank are one entry. A path with many
/// hops is shown without its middle. "waiting" is time that no instruction of the path fills, which
/// only measured timelines have. The times add up to the makespan of the timeline; the first line
/// states it if the report is the mean of several steps.
std::string write_path_text(const StepRecord& record, int width);

}  // namespace bubblescope::traces

// The critical path in a few lines.
#pragma once

#include <string>

#include "traces/files/format.h"

namespace bubblescope::traces {

/// critical path: 22 ops, 6 hops:  F 11 ms  B 22 ms  messages 0 ms  most on
/// rank 3: 24 ms
///   0F0 → 1F0 → 2F0 → 3F0 … 3B7 (16 ops, 24 ms) → 2B7 → 1B7 → 0B7
///
/// An arrow is a hop to another rank; ops of one rank in a row are one entry. Of a path with many
/// hops only both ends are shown. "waiting" is time that no instruction of the path fills:
/// measured timelines have some. All times together are the makespan of the timeline, which is said
/// where the report is the mean of several steps.
std::string write_path_text(const StepRecord& record, int width);

}  // namespace bubblescope::traces

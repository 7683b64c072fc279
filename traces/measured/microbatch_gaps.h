// Micro-batches without any op. The numbers of a step may begin anywhere and go by any stride. A
// number that is missing between others was lost on all ranks, or was never used.
//
//   0 1   3 4     lacks 2: not if a stage runs 3 right behind 1, where 2 would find no room
//   0 2 4 6       lacks none if a stage runs some two of these so; every other one if none does
#pragma once

#include <optional>
#include <string>

#include "traces/measured/group_steps.h"

namespace bubblescope::traces {

/// Says, in a whole sentence without the step, which micro-batches no rank has an op of although
/// every stage had time to run them. nullopt if the numbers have no gaps, if the times of ops show
/// that nothing ran there, or if ops without a number are counted.
std::optional<std::string> describe_missing_microbatches(const StepOps& step);

}  // namespace bubblescope::traces

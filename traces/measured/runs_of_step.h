// Steps in which the pipeline runs several times, one run after another.
#pragma once

#include <optional>
#include <string>

#include "traces/files/trace_format.h"

namespace bubblescope::traces {

/// Says so where all ranks have no micro-batch in flight after the same ones, at equal distances:
/// gradients are accumulated over several runs of the schedule. nullopt where a step is one run.
std::optional<std::string> describe_runs_of_step(const MeasuredStep& step);

}  // namespace bubblescope::traces

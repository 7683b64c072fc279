// Steps in which the pipeline runs several times, one run after another.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "traces/files/trace_format.h"
#include "traces/measured/group_steps.h"

namespace bubblescope::traces {

/// Returns how many runs a step has, where all ranks have no micro-batch in flight after the same
/// ones, at equal distances: gradients are accumulated over several runs of the schedule. nullopt
/// where a step is one run.
std::optional<std::int32_t> count_runs_of_step(const MeasuredStep& step);

/// Says in a whole sentence that a step has several runs.
std::optional<std::string> describe_runs_of_step(const MeasuredStep& step);

/// Says, in a whole sentence, that steps may be shorter than those of the training: nothing marks
/// them, and the optimizer, which was recorded, did not run behind each. `rank_of_recorder` is that
/// of the activities.
std::optional<std::string> describe_runs_without_optimizer(
    const std::map<StepKey, StepOps>& steps, const std::vector<ObservedActivity>& activities,
    const std::vector<std::int32_t>& rank_of_recorder);

}  // namespace bubblescope::traces

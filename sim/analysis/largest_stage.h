// The stage of a pipeline that has the most work.
#pragma once

#include <span>

#include "sim/analysis/causes.h"
#include "sim/analysis/coupled_replay.h"

namespace bubblescope::inline sim {

/// The stage with the most work in steps that are mended first, and its work relative to the mean
/// over the stages.
Cause largest_stage(std::span<const ReplicatedStep> steps, std::span<const Mend> mended);

}  // namespace bubblescope::inline sim

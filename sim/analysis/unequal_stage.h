// The stage of a pipeline whose work differs from that of the others.
#pragma once

#include <span>

#include "sim/analysis/cause_facts.h"
#include "sim/analysis/coupled_replay.h"

namespace bubblescope::inline sim {

/// Finds the stage with the most work, or the one with the least if that is farther from the
/// others. The counterfactuals are applied to the steps first.
UnequalStage find_unequal_stage(std::span<const ReplicatedStep> steps,
                                std::span<const Counterfactual> counterfactuals);

}  // namespace bubblescope::inline sim

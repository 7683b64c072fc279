// The stage of a pipeline whose work differs from that of the others.
#pragma once

#include <span>

#include "sim/analysis/cause_facts.h"
#include "sim/analysis/coupled_replay.h"

namespace bubblescope::inline sim {

/// The stage with the most work in steps to which these counterfactuals are applied first, or the
/// one with the least where that is farther from the others.
UnequalStage find_unequal_stage(std::span<const ReplicatedStep> steps,
                                std::span<const Counterfactual> counterfactuals);

}  // namespace bubblescope::inline sim

// Counterfactuals in which ops take the mean time of a group, or messages none.
#pragma once

#include <cstddef>
#include <vector>

#include "sim/analysis/coupled_replay.h"

namespace bubblescope::inline sim {

/// Every op takes the mean of its kind and micro-batch over all stages. Side stages of `like` keep
/// their times.
Counterfactual with_equal_stages(const ObservedStep& like);

/// Every op takes the mean of its kind and stage over all micro-batches and replicas.
Counterfactual with_equal_lengths();

/// Messages between ranks take no time, nor do their posts and waits.
std::vector<Durations> with_free_messages(std::size_t at, const ReplicatedStep& step,
                                          std::vector<Durations> durations);

}  // namespace bubblescope::inline sim

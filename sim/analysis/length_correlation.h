// Tells whether micro-batches differ in length: their forwards and backwards then grow together.
#pragma once

#include <optional>
#include <span>

#include "sim/analysis/coupled_replay.h"

namespace bubblescope::inline sim {

/// The correlation between the forward and backward times of a micro-batch, from -1 to 1, with the
/// durations of the counterfactuals. A length belongs to a micro-batch on all its stages, so:
///   - times are compared with the mean micro-batch of their stage, replica and step: a slow
///     worker, replica or step is slow for all its micro-batches, whatever their lengths
///   - the value is the least that it is with any one stage left out: where one stage alone takes
///     longer for some micro-batches, that is no length
/// Empty if there are too few micro-batches, or their times do not vary.
std::optional<double> correlate_lengths(std::span<const ReplicatedStep> steps,
                                        std::span<const Counterfactual> counterfactuals);

}  // namespace bubblescope::inline sim

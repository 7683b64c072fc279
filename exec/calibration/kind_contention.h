// Fits how contention depends on what runs beside what.
//
// How many ranks are busy does not tell all: ops of some kinds load what others need, such as the
// memory. An op that takes `a` alone and c(n) with n busy ranks progresses, beside ops of kinds
// b1, b2, ..., at the rate 1 / (1 + (c(n) / a - 1) * w), where w is the mean of the weights
// w[its kind][b1], w[its kind][b2], ... The weights are those for which measured ops have done
// their work, `a`, when they end.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <vector>

#include "exec/calibration/calibrate.h"
#include "sim/model/traffic.h"

namespace bubblescope::exec {

/// [stage][kind][busy ranks - 1], as fill_contention() returns them; empty: not measured.
using ContendedTimes = std::vector<std::array<std::vector<Nanos>, kComputeKinds>>;

/// Weights by least squares, without the tenth of the ops that fits worst, and rounded to
/// thousandths. A weight is 1 for kinds that were never side by side. Empty if no op ran beside
/// another one that slowed it.
std::optional<KindWeights> fit_kind_weights(std::span<const Observation> observations,
                                            const ContendedTimes& times,
                                            std::int32_t ranks_per_device);

}  // namespace bubblescope::exec

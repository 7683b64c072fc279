// How far the speeds of ops differ by chance. A smaller difference is not a cause.
//
// The median time of a group of ops still contains a part of the noise: that of single ops, of
// ranks in single steps (sim/analysis/fit_noise.h) and, between replicas, of the lengths of their
// micro-batches. Two such medians are compared, several times: one comparison of a thousand exceeds
// 3.5 standard errors.
#pragma once

#include <span>

#include "sim/analysis/op_samples.h"
#include "sim/model/noise.h"

namespace bubblescope::inline sim {

/// The parts of an op's time by which medians differ by chance.
struct Chance {
  double between_ranks = 0;     ///< of one replica, whose ranks have the same micro-batches
  double between_replicas = 0;  ///< of the same rank
};

Chance find_chance(std::span<const OpSample> samples, const Noise& noise);

}  // namespace bubblescope::inline sim

// By how much steps exceed the best of those that are compared.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/ir/units.h"

namespace bubblescope::tools {

/// The properties that make a step a better choice than others.
struct RankedStep {
  Nanos step = 0;
  std::int32_t microbatches = 1;
  bool trains = false;
  bool over_limits = false;  ///< its memory is too small, or a rank exceeds its cap
};

/// By how much each step exceeds the best one, as a fraction: in all where both have as many
/// micro-batches, else per micro-batch. The best is the fastest of those that train, or do not, as
/// the step does, and that keep their limits; where none of them does, the fastest of all. NaN
/// where the best takes no time and the step does.
std::vector<double> find_excesses(const std::vector<RankedStep>& steps);

/// Whether steps exceed their limits and no other that trains, or does not, as they do, keeps them.
bool lack_fitting_step(const std::vector<RankedStep>& steps);

/// The excess as a cell of a csv file: empty where it is not known.
std::string excess_csv(double excess);

}  // namespace bubblescope::tools

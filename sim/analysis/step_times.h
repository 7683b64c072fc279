// Step times over many scenarios of noise, and of two schedules under the same noise.
#pragma once

#include <span>
#include <vector>

#include "sim/analysis/report.h"

namespace bubblescope {

/// Quantiles are nearest ranks: the shortest makespan that so many of all do not exceed.
StepTimes summarize(std::vector<Nanos> makespans);

/// In which part of the scenarios the first is shorter than the second; equal ones count half.
/// Scenario n of both must be the same noise.
double probability_of_beating(std::span<const Nanos> first, std::span<const Nanos> second);

}  // namespace bubblescope

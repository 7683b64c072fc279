// Step times over many noise scenarios, for one schedule and for two under the same noise.
#pragma once

#include <span>
#include <vector>

#include "sim/analysis/report.h"

namespace bubblescope::inline sim {

/// Quantiles are nearest ranks: the shortest makespan that this fraction of all does not exceed.
StepTimes summarize(std::vector<Nanos> makespans);

/// The fraction of scenarios in which the first is shorter than the second; ties count half.
/// Scenario n of both must have the same noise.
double compute_win_probability(std::span<const Nanos> first, std::span<const Nanos> second);

}  // namespace bubblescope::inline sim

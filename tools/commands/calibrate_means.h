// Scales costs until they give back the mean durations of the ops of the measured schedules.
//
// The durations for each number of busy ranks come from ranks that take turns, and from ops during
// which that number did not change. Both are a little faster than the mean op of a step, so a step
// that is predicted from them alone would be too short.
#pragma once

#include <vector>

#include "exec/calibration/kind_contention.h"
#include "tools/commands/measure.h"

namespace bubblescope::tools {

/// The measurements that the costs must reproduce.
struct MeasuredMeans {
  const std::vector<Measurement>& schedules;
  const exec::Calibration& calibration;  ///< of their steps
  const PredictInputs& inputs;
};

/// The factor for each stage and kind of op by which the costs of `table` are too short; 1 for ops
/// that no schedule has.
std::vector<std::array<double, kComputeKinds>> find_shortfalls(const CostTable& table,
                                                               const MeasuredMeans& measured);

/// Multiplies all times of a stage and kind.
void scale_times(exec::ContendedTimes& times,
                 const std::vector<std::array<double, kComputeKinds>>& factors);

}  // namespace bubblescope::tools

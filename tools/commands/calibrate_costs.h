// Makes a cost table of what was measured.
#pragma once

#include <vector>

#include "tools/commands/calibration_evidence.h"
#include "tools/commands/measure.h"

namespace bubblescope::tools {

/// Synchronous training ends with the optimizer's steps, so that these are measured too. On devices
/// some run after the step and take no time in it.
LowerOptions choose_calibration_lowering(const PredictInputs& inputs, const RunOptions& run,
                                         const Schedule& schedule);

/// How costs are made of measurements.
struct CostRequest {
  const RunContext& context;
  bool contention = true;  ///< also measures by the number of busy ranks of a device
};

/// Makes costs of measured schedules with equal stages. `wider` are measured schedules of equal
/// layers per stage with more stages, from which come the costs of a middle stage; may be empty.
/// Where the clock of every step is known, costs are those at the median clock. Throws Error if a
/// further measurement fails.
CalibratedCosts make_measured_costs(std::vector<Measurement> measurements,
                                    std::vector<Measurement> wider, const CostRequest& request);

}  // namespace bubblescope::tools

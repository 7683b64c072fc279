// Writes what was measured as a cost file.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "tools/commands/measure.h"

namespace bubblescope::tools {

/// Synchronous training ends with the optimizer's steps, so that these are measured too. On devices
/// some run after the step and take no time in it.
LowerOptions choose_calibration_lowering(const PredictOptions& options, const RunOptions& run,
                                         const Schedule& schedule);

/// How costs are made of measurements.
struct CostRequest {
  const RunContext& context;
  bool contention = true;  ///< also measures by the number of busy ranks of a device
};

/// Writes "bubblescope-costs/1" from measured schedules with equal stages. `wider` are measured
/// schedules of equal layers per stage with more stages, from which come the costs of a middle
/// stage; may be empty. Throws Error if a further measurement fails.
nlohmann::ordered_json write_measured_costs(const std::vector<Measurement>& measurements,
                                            const std::vector<Measurement>& wider,
                                            const CostRequest& request);

/// The entries of "stages" as those of any number of stages: the first, the mean of those between,
/// and the last. Null if there are none between.
nlohmann::ordered_json write_stage_kinds(const nlohmann::ordered_json& stages);

}  // namespace bubblescope::tools

// Many scenarios of one schedule, which differ in their costs, timed 16 at a time.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <string>
#include <vector>

#include "sim/ir/valid_schedule.h"
#include "tools/inputs/inputs.h"

namespace bubblescope::tools {

/// One cost in every scenario: one number each, or one for every stage of each.
struct ScenarioCost {
  std::string name;  ///< "f", "i", "w", "b", "r", "p2p"
  std::int32_t per_scenario = 1;
  std::vector<double> milliseconds;  ///< [scenario * per_scenario + stage]
};
using ScenarioCosts = std::vector<ScenarioCost>;

/// Returns the makespan of every scenario. Costs that do not vary come from the options. Throws
/// Error where costs are not uniform, or ops and messages are not independent of each other.
std::vector<Nanos> simulate_scenarios(const ValidSchedule& schedule, const PredictInputs& inputs,
                                      const ScenarioCosts& costs);

void bind_scenarios(nanobind::module_& module);

}  // namespace bubblescope::tools

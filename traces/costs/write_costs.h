// Writes a cost table as a cost file (docs/cost_file.md).
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "sim/model/cost_table.h"

namespace bubblescope::traces {

/// Writes the stages' durations, replicas, messages, noise and the time outside the pipeline:
/// what can be measured in a trace. `measured` becomes the members of "measured": names and json
/// values.
std::string write_measured_costs(
    const CostTable& table, const std::vector<std::pair<std::string, std::string>>& measured);

}  // namespace bubblescope::traces

// Calibrates contention between ranks that share a device.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <vector>

#include "exec/calibration/calibrate.h"
#include "tools/commands/measure.h"

namespace bubblescope::tools {

/// Runs ops with 1, 2, ... busy ranks on their device, and adds their durations to a cost file: the
/// durations without contention to each stage, the others to its "in_company". Measurements of
/// whole schedules take precedence over those of single ops. Throws Error if a run fails.
nlohmann::ordered_json with_contention(nlohmann::ordered_json costs,
                                       const std::vector<Measurement>& schedules,
                                       const RunContext& context);

/// Prefers estimates from many real steps over estimates from ranks that take turns.
std::vector<std::optional<exec::Estimate>> choose_estimates(
    const std::vector<std::optional<exec::Estimate>>& in_schedules,
    const std::vector<std::optional<exec::Estimate>>& in_turns);

/// Collects all steps of all measurements; refers to them.
std::vector<exec::Observation> collect_observations(const std::vector<Measurement>& schedules);

}  // namespace bubblescope::tools

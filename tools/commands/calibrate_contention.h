// Calibrates contention between ranks that share a device.
#pragma once

#include <optional>
#include <vector>

#include "exec/calibration/calibrate.h"
#include "tools/commands/calibration_evidence.h"
#include "tools/commands/measure.h"

namespace bubblescope::tools {

/// Sets a stage's duration of a compute op, which for R depends on what was recomputed.
void set_duration(StageEntry& entry, OpKind kind, Recompute recompute, Nanos time);

/// Runs ops with 1, 2, ... ranks of their device busy, and adds their durations: alone as each
/// stage's durations, with others as its contention. Measurements of whole schedules take
/// precedence over those of single ops. Throws Error where a run fails.
CalibratedCosts with_contention(CalibratedCosts costs, const std::vector<Measurement>& schedules,
                                const RunContext& context);

/// Prefers estimates from many real steps over estimates from ranks that take turns.
std::vector<std::optional<exec::Estimate>> choose_estimates(
    const std::vector<std::optional<exec::Estimate>>& in_schedules,
    const std::vector<std::optional<exec::Estimate>>& in_turns);

/// Collects all steps of all measurements; refers to them.
std::vector<exec::Observation> collect_observations(const std::vector<Measurement>& schedules);

}  // namespace bubblescope::tools

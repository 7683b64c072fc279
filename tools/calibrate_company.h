// The part of `calibrate` that is about ranks which share a device.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "exec/calibration/calibrate.h"
#include "tools/measure.h"

namespace bubblescope {

/// Runs ops with 1, 2, ... ranks of their device busy, and puts what they took into a cost file:
/// alone as each stage's durations, beside others as its "in_company". What schedules that were run
/// show of this goes before what ops on their own show. Throws Error where a run breaks down.
nlohmann::ordered_json with_company(nlohmann::ordered_json costs,
                                    const std::vector<Measurement>& schedules, const Bench& bench);

/// What many real steps show of some company goes before what was seen in turns.
std::vector<std::optional<Estimate>> choose_estimates(
    const std::vector<std::optional<Estimate>>& in_schedules,
    const std::vector<std::optional<Estimate>>& in_turns);

/// All steps of all that was measured; refers to it.
std::vector<Observation> observations_of(const std::vector<Measurement>& schedules);

}  // namespace bubblescope

// Departures: conditions of a step that no published run had, so that the known errors do not apply
// to its prediction.
#pragma once

#include <string>
#include <vector>

#include "sim/ir/schedule.h"
#include "sim/predict/config.h"

namespace bubblescope::inline sim {

/// Whether the ops of overlapped pairs interleave by their parts.
bool interleaves_pairs(const Schedule& schedule, const Config& config);

/// Returns what a prediction has beyond the runs behind sim/model/known_errors.h: "a slow rank",
/// "an injected fault". Empty where the step is one that published runs may have had.
std::vector<std::string> find_departures(const Schedule& schedule, const Config& config);

}  // namespace bubblescope::inline sim

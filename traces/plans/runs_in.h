// Finds the frameworks that can run a plan's schedule by name, in its shape.
#pragma once

#include <string>
#include <vector>

#include "sim/analysis/plan.h"

namespace bubblescope::traces {

/// Whether the framework of a profile ("pytorch", "megatron", ...) has the configuration's
/// schedule, names for the modules and layers that it recomputes, and PyTorch's options where it
/// needs them.
bool runs_in(const Configuration& configuration, const std::string& framework);

/// The frameworks that have the schedule, in the order of kProfiles. All releases of PyTorch have
/// the same schedules and count as one.
std::vector<std::string> frameworks_of(const Configuration& configuration);

/// The names of all known frameworks.
std::vector<std::string> known_frameworks();

}  // namespace bubblescope::traces

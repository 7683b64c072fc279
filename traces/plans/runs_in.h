// Which frameworks have a plan's schedule by name, in its shape.
#pragma once

#include <string>
#include <vector>

#include "sim/analysis/plan.h"

namespace bubblescope::traces {

/// Whether the framework of a --profile ("pytorch", "megatron", ...) has it.
bool runs_in(const Configuration& configuration, const std::string& framework);

/// All that have it, in the order of --profile. The releases of PyTorch have the same schedules and
/// count once.
std::vector<std::string> frameworks_of(const Configuration& configuration);

/// All frameworks that are known.
std::vector<std::string> known_frameworks();

}  // namespace bubblescope::traces

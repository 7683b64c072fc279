// Collectives around the ops as causes, where whole steps cannot be replayed.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "sim/analysis/cause.h"
#include "sim/ir/units.h"

namespace bubblescope::inline sim {

/// One cause for each collective: without it, every step is shorter by its time outside the
/// pipeline. `exposed`: by name, that time in every step; 0 where it does not run.
std::vector<Cause> find_exposed_collectives(
    const std::map<std::string, std::vector<Nanos>>& exposed);

}  // namespace bubblescope::inline sim

// Warns about costs of ops that a step does not have.
#pragma once

#include <span>

#include "sim/ir/program.h"
#include "sim/model/cost_model.h"

namespace bubblescope::tools {

/// Reports on stderr which of these costs changed nothing in any of the programs, and which flag
/// adds their ops: a question about an optimizer step must not be answered with a step that has
/// none.
void warn_of_unused_costs(const UniformCost& cost, std::span<const Program> programs);

}  // namespace bubblescope::tools

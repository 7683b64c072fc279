// The dataflow pass: runs a Program in one loop. It is the dry run of the executor.
#pragma once

#include <span>

#include "sim/ir/program.h"
#include "sim/ir/timeline.h"
#include "sim/model/cost_model.h"

namespace bubblescope::inline sim {

/// Starts every instruction when it heads its lane and its dependencies have ended. O(instructions
/// + dependencies).
Timeline simulate(const Program& program, std::span<const Nanos> durations);

inline Timeline simulate(const Program& program, const CostModel& costs) {
  return simulate(program, price(program, costs));
}

}  // namespace bubblescope::inline sim

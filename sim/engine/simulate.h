// Simulation: runs a Program and returns its Timeline. It is the dry run of the executor.
//
// There are two engines. The dataflow pass runs a Program in one loop; it serves where every
// instruction's duration is known in advance. The event loop of simulate_shared.h runs it in time
// order; it serves where messages share links or ops slow each other.
#pragma once

#include <span>

#include "sim/engine/simulate_shared.h"
#include "sim/ir/program.h"
#include "sim/ir/timeline.h"
#include "sim/model/cost_model.h"
#include "sim/model/timing.h"

namespace bubblescope::inline sim {

/// The dataflow pass: starts every instruction when it heads its lane and its dependencies have
/// ended, and not before its gap (see price_gaps(); empty: none) after the end of the one before it
/// in its lane. O(instructions + dependencies).
Timeline simulate(const Program& program, std::span<const Nanos> durations,
                  std::span<const Nanos> gaps = {});

inline Timeline simulate(const Program& program, const CostModel& costs) {
  return simulate(program, price(program, costs), price_gaps(program, costs));
}

/// Chooses the engine: the event loop where the timing has traffic, else the dataflow pass.
SimulatedRun simulate(const Program& program, const Timing& timing);

}  // namespace bubblescope::inline sim

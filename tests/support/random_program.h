// Random programs for tests of the engine: lanes, instructions without one, any dependencies.
#pragma once

#include <random>
#include <vector>

#include "sim/ir/program.h"
#include "sim/ir/units.h"

namespace bubblescope {

/// Up to 5 ranks and 60 instructions. Dependencies point to earlier instructions of any lane; what
/// has no lane is a message to another rank, where there is one.
Program random_program(std::mt19937& random);

/// One duration from 1 to 50 per instruction.
std::vector<Nanos> random_durations(const Program& program, std::mt19937& random);

}  // namespace bubblescope

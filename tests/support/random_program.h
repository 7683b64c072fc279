// Random programs for tests of the engine: lanes, instructions without a lane, any dependencies.
#pragma once

#include <random>
#include <vector>

#include "sim/ir/program.h"
#include "sim/ir/units.h"

namespace bubblescope::tests {

/// Up to 5 ranks and 60 instructions. Dependencies point to earlier instructions of any lane;
/// instructions without a lane are messages to another rank, if there is one.
Program random_program(std::mt19937& random);

/// One duration from 1 to 50 per instruction.
std::vector<Nanos> random_durations(const Program& program, std::mt19937& random);

}  // namespace bubblescope::tests

// A digest of a Program, by which processes find out whether they run the same one.
#pragma once

#include <cstdint>

#include "sim/ir/program.h"

namespace bubblescope::inline sim {

/// Covers every field of the Program.
std::uint64_t digest_program(const Program& program);

}  // namespace bubblescope::inline sim

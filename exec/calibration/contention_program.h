// Builds a Program that measures contention: the ranks of a device take turns, one at a time, then
// two at a time, and so on up to all of them. During its turn, a rank runs ops without waiting for
// other ranks.
#pragma once

#include <cstdint>

#include "sim/ir/program.h"
#include "sim/ir/schedule.h"

namespace bubblescope::exec {

/// Every rank runs every kind of op of all its stages while 1, 2, ... ranks of its device are busy.
/// No op waits for a message; it reads whatever its buffer holds. Ranks in the same turn run
/// different ops side by side, as in a schedule, and send messages meanwhile. At the end, messages
/// are sent while no rank computes.
Program contention_program(const Schedule& schedule, std::int32_t ranks_per_device);

}  // namespace bubblescope::exec

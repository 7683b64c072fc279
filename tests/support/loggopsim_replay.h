// Runs GOAL as the original LogGOPSim does, with -o, -g, -O and -G at 0 and eager messages: a job
// counts as done when its own cpu has taken it, and what it frees starts when *its* cpu is free.
// Jobs that wait for a job of another cpu therefore start too early there.
#pragma once

#include <cstdint>

#include "tests/support/foreign_replay.h"

namespace bubblescope::tests {

/// The time when the last cpu is free. Throws std::runtime_error if messages or jobs are left.
std::int64_t replay_on_loggopsim(const ForeignTrace& trace);

}  // namespace bubblescope::tests

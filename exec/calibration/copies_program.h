// Builds a Program that measures how long offloading takes: copying saved activations to other
// memory and back.
#pragma once

#include <cstdint>

#include "sim/ir/program.h"
#include "sim/ir/schedule.h"

namespace bubblescope::exec {

/// The saved activations of every stage are evicted to the rank's offload target and loaded again:
/// first one after the other while nothing else runs, then while 1, 2, ... max_busy ranks of the
/// device compute, among them the rank whose activations are copied. No op waits for a message. The
/// second part needs two micro-batches.
Program copies_program(const Schedule& schedule, std::int32_t max_busy);

}  // namespace bubblescope::exec

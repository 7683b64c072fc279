// A Program that shows what it takes to move what forwards keep into another memory and back.
#pragma once

#include <cstdint>

#include "sim/ir/program.h"
#include "sim/ir/schedule.h"

namespace bubblescope {

/// Every stage's forward is evicted and loaded again to whom the schedule's keepers say: first one
/// after the other, while nothing else runs, then beside the ops of 1, 2, ... most_busy ranks of
/// the device, of which the rank whose activations move is one. Nobody waits for messages. The
/// second part needs two micro-batches.
Program copies_program(const Schedule& schedule, std::int32_t most_busy);

}  // namespace bubblescope

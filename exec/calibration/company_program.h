// A Program that shows what ops take in company: the ranks of a device take turns, one at a time,
// two at a time, and so on to all of them, and within their turn run ops that wait for nobody.
#pragma once

#include <cstdint>

#include "sim/ir/program.h"
#include "sim/ir/schedule.h"

namespace bubblescope {

/// Every rank runs every kind of op of all its stages with 1, 2, ... ranks of its device at work.
/// Nobody waits for messages: ops read what was there before. Ranks that are in a turn together run
/// different ops side by side, as they do in a schedule, and send messages beside them; at the end
/// messages go while no rank computes.
Program company_program(const Schedule& schedule, std::int32_t ranks_per_device);

}  // namespace bubblescope

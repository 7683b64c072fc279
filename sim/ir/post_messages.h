// The messages of a schedule as a runtime posts them: sends and receives among the compute ops.
//
//   0F0 0SEND_F0 0F1 0SEND_F1 0RECV_B0 0B0 0RECV_B1 0B1
//   1RECV_F0 1RECV_F1 1F0 1B0 1SEND_B0 1F1 1B1 1SEND_B1
#pragma once

#include <vector>

#include "sim/ir/valid_schedule.h"

namespace bubblescope {

/// What PyTorch's lowering makes of an order: in passes over the ranks, each rank puts down its
/// next cell when what it needs has been made and, where the result goes to another rank, a SEND
/// behind it and at once the matching RECV at the end of the other rank's list. An idle cell of
/// `posted` lets its rank sit out one pass and is dropped. A schedule that was read with messages
/// keeps them.
///
/// The ops must be sound (validate_ops). Throws Error, with where every rank stands, for orders
/// that wait for each other.
std::vector<RankOrder> post_messages(const ValidSchedule& schedule);

}  // namespace bubblescope

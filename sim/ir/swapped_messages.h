// Swapped messages: two messages that are received in another order than they are sent.
//
//   rank 0: 0SEND_F6 2SEND_B0    rank 1: 1RECV_B0 1RECV_F6
//
// A runtime that matches messages by tag runs these lists. One that matches the next message of a
// peer with the next receive, as PyTorch does over NCCL and gloo, would use a gradient as an
// activation here.
#pragma once

#include <vector>

#include "sim/ir/error.h"
#include "sim/ir/schedule.h"

namespace bubblescope::inline sim {

/// The first swapped message between each two ranks, reported at its receive. Both ends of every
/// message must be posted (validate_messages).
Problems find_swapped_messages(const Schedule& schedule, const std::vector<RankOrder>& posted);

}  // namespace bubblescope::inline sim

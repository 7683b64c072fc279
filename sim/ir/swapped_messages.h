// Messages that are received in another order than they are sent.
//
//   rank 0: 0SEND_F6 2SEND_B0    rank 1: 1RECV_B0 1RECV_F6
//
// A runtime that knows messages by name runs these lists; one that takes the next message of a peer
// for the next receive, as PyTorch does over NCCL and gloo, uses a gradient as an activation here.
#pragma once

#include <vector>

#include "sim/ir/error.h"
#include "sim/ir/schedule.h"

namespace bubblescope {

/// The first such message between each two ranks, at its receive. Needs lists with both ends of
/// every message (validate_messages).
Problems find_swapped_messages(const Schedule& schedule, const std::vector<RankOrder>& posted);

}  // namespace bubblescope

// The messages of a schedule as a runtime posts them: sends and receives among the compute ops.
//
//   0F0 0SEND_F0 0F1 0SEND_F1 0RECV_B0 0B0 0RECV_B1 0B1
//   1RECV_F0 1RECV_F1 1F0 1B0 1SEND_B0 1F1 1B1 1SEND_B1
#pragma once

#include <vector>

#include "sim/ir/valid_schedule.h"

namespace bubblescope::inline sim {

/// PyTorch's lowering of an order. In passes over the ranks, each rank appends its next op once the
/// op's inputs exist; if its result goes to another rank, a SEND follows, and the matching RECV is
/// appended at once to the other rank's list. An idle cell of `posted` makes its rank skip one pass
/// and is dropped. A schedule that was read with messages keeps them.
///
/// The ops must have passed validate_ops. Throws Error for orders that deadlock, with the op that
/// blocks every rank.
std::vector<RankOrder> post_messages(const ValidSchedule& schedule);

}  // namespace bubblescope::inline sim

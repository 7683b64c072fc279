// Whether posted lists say themselves what a rank waits for.
#pragma once

#include <algorithm>

#include "sim/ir/schedule.h"

namespace bubblescope {

/// True for the ops at which a rank waits for what it began itself: a SEND or a reduction.
inline bool is_wait(OpKind kind) { return is_send_wait(kind) || kind == OpKind::kWaitReduceGrad; }

/// Whether there is such an op in `posted`, as since PyTorch 2.15.
inline bool posts_waits(const Schedule& schedule) {
  return std::any_of(schedule.posted.begin(), schedule.posted.end(), [](const RankOrder& cells) {
    return std::any_of(cells.begin(), cells.end(), [](const Op& op) { return is_wait(op.kind); });
  });
}

}  // namespace bubblescope

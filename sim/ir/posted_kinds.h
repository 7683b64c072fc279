// The kinds of ops that posted lists contain.
#pragma once

#include <algorithm>

#include "sim/ir/schedule.h"

namespace bubblescope::inline sim {

/// Whether `posted` has an op of a kind for which is_sought(kind) is true.
template <class IsSought>
bool posts_any(const Schedule& schedule, IsSought is_sought) {
  return std::any_of(schedule.posted.begin(), schedule.posted.end(), [&](const RankOrder& cells) {
    return std::any_of(cells.begin(), cells.end(),
                       [&](const Op& op) { return is_sought(op.kind); });
  });
}

/// True for the ops that block a rank until something it started, a SEND or a reduction, is done.
inline bool is_wait(OpKind kind) { return is_send_wait(kind) || kind == OpKind::kWaitReduceGrad; }

/// Whether `posted` has such an op, as in PyTorch's lists since 2.15.
inline bool posts_waits(const Schedule& schedule) { return posts_any(schedule, is_wait); }

}  // namespace bubblescope::inline sim

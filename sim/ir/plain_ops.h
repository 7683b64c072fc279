// Recognizes valid orders of F, B, I and W alone, which most schedules have, in a few instructions
// per op.
#pragma once

#include <cstddef>

#include "sim/ir/schedule.h"

namespace bubblescope::inline sim {

/// F, B, I and W, which are the first kinds of the enum.
inline constexpr std::size_t kPlainKinds = 4;

/// Whether every rank runs only F, B, I and W ops, none of them overlapped or fused, each once, on
/// its rank and after those of its stage and micro-batch that must precede it. Then the ops are
/// valid. If not, they may still be valid in another way, and validate_ops() finds that. The frame
/// of the schedule, which is all but its orders, must be valid.
bool are_plainly_valid(const Schedule& schedule);

}  // namespace bubblescope::inline sim

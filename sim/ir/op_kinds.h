// The kinds of ops that a schedule has.
#pragma once

#include <vector>

#include "sim/ir/schedule.h"

namespace bubblescope::inline sim {

/// Whether any rank runs an op of this kind.
bool has_kind(const Schedule& schedule, OpKind kind);
bool has_kind(const std::vector<RankOrder>& lists, OpKind kind);

/// Whether any rank runs an overlapped pair.
bool has_pairs(const Schedule& schedule);

}  // namespace bubblescope::inline sim

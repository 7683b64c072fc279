// Where every rank's time went: busy by kind, idle by cause.
#pragma once

#include <vector>

#include "sim/analysis/report.h"
#include "sim/ir/timeline.h"

namespace bubblescope {

/// What a rank is busy with while it runs an op.
BusyKind busy_kind(OpKind kind);

/// One entry per rank with everything but its peak. A gap between two ops is communication while
/// the message that ended it was on its way, memory while a copy was, and dependency before; of
/// that, as much is imbalance as the rank has less work than the busiest one.
std::vector<RankReport> account_for_time(const Program& program, const Timeline& timeline);

}  // namespace bubblescope

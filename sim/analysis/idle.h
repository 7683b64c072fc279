// Where every rank's time went: busy by kind, idle by cause.
#pragma once

#include <cstdint>
#include <optional>
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

/// A stretch of time in which a rank's compute lane stands still for one reason.
struct IdleGap {
  std::int32_t rank = 0;
  IdleCause cause = IdleCause::kDependency;
  Nanos start = 0;
  Nanos end = 0;
  std::optional<InstructionId> before;  ///< what it delays; empty behind the rank's last op

  bool operator==(const IdleGap&) const = default;
};

/// By rank, then by time. With what a rank computes they fill the step from end to end, and per
/// rank and cause they add up to account_for_time(). Imbalance belongs to a rank as a whole: of its
/// waiting for others, the first is shown as imbalance until that is used up.
std::vector<IdleGap> find_idle_gaps(const Program& program, const Timeline& timeline);

}  // namespace bubblescope

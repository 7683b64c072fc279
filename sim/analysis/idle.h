// Accounts for every rank's time: busy time by kind, idle time by cause.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/analysis/blocker.h"
#include "sim/analysis/report.h"
#include "sim/ir/timeline.h"

namespace bubblescope::inline sim {

/// The kind of busy time to which an op counts.
BusyKind classify_busy(OpKind kind);

/// The causes that a report shows: arrivals and launches only where there are any.
std::vector<IdleCause> choose_idle_causes(const BubbleReport& report);

/// One entry per rank, complete except for its peak. A gap between two ops is communication while
/// the message that ended it was in transit, memory while a copy was, and dependency before that;
/// if all that the op waited for had ended before it, it is a launch. Dependency time counts as
/// imbalance up to the rank's difference in work to the busiest rank.
std::vector<RankReport> account_for_time(const Program& program, const Timeline& timeline,
                                         const Blockers& blockers);

/// Adds what follows from the waiting times and the work of all ranks: idle times, the drain after
/// a rank's last op, and the part of the dependency time that is imbalance. The step is longer than
/// its bounds by `added`.
std::vector<RankReport> complete_idle_times(std::vector<RankReport> ranks, const StepBounds& bounds,
                                            Nanos added);

/// A period in which a rank's compute lane is idle for one cause.
struct IdleGap {
  std::int32_t rank = 0;
  IdleCause cause = IdleCause::kDependency;
  Nanos start = 0;
  Nanos end = 0;
  std::optional<InstructionId> before;  ///< the op that it delays; empty after the rank's last op

  bool operator==(const IdleGap&) const = default;
};

/// All idle gaps, by rank, then by time. Together with the ops they fill the step without gaps, and
/// per rank and cause they add up to account_for_time(). Imbalance belongs to a rank as a whole, so
/// the first dependency gaps of a rank are shown as imbalance until it is used up.
std::vector<IdleGap> find_idle_gaps(const Program& program, const Timeline& timeline);

}  // namespace bubblescope::inline sim

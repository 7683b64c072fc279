// Repeats: a timeline of which one period counts several times. A step that repeats itself between
// warm-up and drain is timed with few of its periods; the sums of its report count one of them as
// often as the step has it (sim/predict/predict_repeated.h).
#pragma once

#include <cstdint>
#include <vector>

#include "sim/analysis/blocker.h"
#include "sim/analysis/report.h"
#include "sim/ir/valid_schedule.h"

namespace bubblescope::inline sim {

/// An instruction that starts in [begin, end) occurs 1 + `copies` times, each time end - begin
/// after the last. Without copies a timeline is that of the whole step.
struct Repeats {
  Nanos begin = 0;
  Nanos end = 0;
  std::int64_t copies = 0;

  /// Returns how often an instruction that starts at this time occurs.
  std::int64_t count(Nanos start) const { return start >= begin && start < end ? 1 + copies : 1; }
  Nanos period() const { return end - begin; }
  /// Returns by how much the step is longer than its timeline.
  Nanos added() const { return copies * period(); }
};

/// Does the work of account_for_time() for a step that repeats a period; the bounds are those of
/// its timeline. Every rank must be busy before the period and after it.
std::vector<RankReport> account_for_time(const Program& program, const Timeline& timeline,
                                         const Blockers& blockers, const Repeats& repeats,
                                         const StepBounds& bounds);

/// lower_bound() of such a step: its ranks do more work in chains of the same length.
Nanos lower_bound(const Program& program, const Timeline& timeline, const Repeats& repeats);

/// Does the work of analyze() for such a step, without critical path and slack. The shape is that
/// of the given schedule, and the peaks are those of the timeline.
BubbleReport analyze(const ValidSchedule& schedule, const Program& program,
                     const Timeline& timeline, const MemoryModel& memory, const Blockers& blockers,
                     const Repeats& repeats);

}  // namespace bubblescope::inline sim

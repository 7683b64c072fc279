// Turns a Timeline into a BubbleReport. The Timeline may be predicted, measured or imported.
#pragma once

#include "sim/analysis/critical_path.h"
#include "sim/analysis/report.h"
#include "sim/ir/timeline.h"
#include "sim/ir/valid_schedule.h"
#include "sim/model/memory_model.h"

namespace bubblescope::inline sim {

/// The whole report. Linear in the size of the Program; all times are exact integers.
BubbleReport analyze(const ValidSchedule& schedule, const Program& program,
                     const Timeline& timeline, const MemoryModel& memory = {},
                     Slack slack = Slack::kFind);

/// Whether a brief report includes the lower bound. Where micro-batches differ, computing it takes
/// a third of the time that `plan` spends on a configuration.
enum class LowerBound : bool { kSkip, kFind };

/// Computes the bubble of a report whose makespan, spans, ideal time and ranks are known.
Bubble measure_bubble(const BubbleReport& report);

/// Adds what follows from the times of the ranks: makespan, spans, ideal time and bubble.
BubbleReport with_totals(BubbleReport report);

/// A report for comparing plans. It leaves out the critical path and the slack of every
/// instruction, which only matter when a single step is examined.
BubbleReport analyze_briefly(const ValidSchedule& schedule, const Program& program,
                             const Timeline& timeline, const MemoryModel& memory = {},
                             LowerBound bound = LowerBound::kFind);

}  // namespace bubblescope::inline sim

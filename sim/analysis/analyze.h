// Turns a Timeline into a BubbleReport. The Timeline may be predicted, measured or imported.
#pragma once

#include "sim/analysis/report.h"
#include "sim/ir/timeline.h"
#include "sim/ir/valid_schedule.h"
#include "sim/model/memory_model.h"

namespace bubblescope::inline sim {

/// The whole report. Linear in the size of the Program; all times are exact integers.
BubbleReport analyze(const ValidSchedule& schedule, const Program& program,
                     const Timeline& timeline, const MemoryModel& memory = {});

/// Whether a brief report has its lower bound, which takes a third of a plan's time.
enum class LowerBound : bool { kSkip, kFind };

/// The report by which plans are compared: without the critical path and the slack of every
/// instruction, which are for one step to look into.
BubbleReport analyze_briefly(const ValidSchedule& schedule, const Program& program,
                             const Timeline& timeline, const MemoryModel& memory = {},
                             LowerBound bound = LowerBound::kFind);

}  // namespace bubblescope::inline sim

// Turns a Timeline into a BubbleReport. The Timeline may be predicted, measured or imported.
#pragma once

#include "sim/analysis/report.h"
#include "sim/ir/timeline.h"
#include "sim/ir/valid_schedule.h"
#include "sim/model/memory_model.h"

namespace bubblescope {

/// The whole report. Linear in the size of the Program; all times are exact integers.
BubbleReport analyze(const ValidSchedule& schedule, const Program& program,
                     const Timeline& timeline, const MemoryModel& memory = {});

/// The report for comparing plans: without the critical path and the slack of every instruction.
BubbleReport analyze_briefly(const ValidSchedule& schedule, const Program& program,
                             const Timeline& timeline, const MemoryModel& memory = {});

}  // namespace bubblescope

// Completes the report of a simulated step with what only a simulation can tell: how links are
// used, how steps differ under noise, and which rank or kind of op the step time depends on.
#pragma once

#include "sim/analysis/critical_path.h"
#include "sim/analysis/report.h"
#include "sim/engine/simulate.h"
#include "sim/ir/valid_schedule.h"
#include "sim/model/scenarios.h"

namespace bubblescope::inline sim {

/// A simulated step, by reference: the values from which its report is made.
struct SimulatedStep {
  const ValidSchedule& schedule;
  const Program& program;
  const CostModel& costs;
  const MemoryModel& memory;
  const Timing& timing;
  const SimulatedRun& run;
};

/// The complete report, with its links, and with noise and sensitivity where they are asked for.
BubbleReport analyze_run(const SimulatedStep& step, const Scenarios& scenarios, Slack slack);

}  // namespace bubblescope::inline sim

// Ready policies: the order that results where ranks run what is ready, and what noise does to it.
#pragma once

#include <optional>
#include <vector>

#include "sim/analysis/report.h"
#include "sim/engine/ready_run.h"
#include "sim/ir/valid_schedule.h"
#include "sim/predict/config.h"
#include "sim/predict/predict.h"

namespace bubblescope::inline sim {

/// A schedule under a ready policy.
struct ReadyStep {
  ValidSchedule schedule;          ///< in the order that ranks choose without noise
  std::optional<StepTimes> noise;  ///< under the noise of the Config: ranks choose in each scenario
};

/// Throws Error for what a policy cannot reorder, such as posted messages, copies and asynchronous
/// updates.
void expect_reorderable(const Schedule& schedule, const Config& config);

/// The schedule whose order is the hint of a policy (sim/engine/ready_run.h). Where pairs are
/// serial it has none, so that their ops are chosen one by one.
ValidSchedule make_hint(ValidSchedule schedule, Overlap overlap);

/// Throws Error where the times of ops depend on others.
void expect_independent_times(const Timing& timing);

/// A step whose ranks choose.
struct ReadyInput {
  const ValidSchedule& schedule;
  const Program& program;
  const std::vector<Nanos>& durations;
  const MemoryModel& memory;
  UpdateOptions update = {};  ///< how it ends
};

/// Returns the rules of a policy.
ReadyRules make_ready_rules(const ReadyInput& step, ReadyPriority policy);

/// Returns for each rank the compute ops among the instructions that it ran, in the order in which
/// it ran them.
std::vector<RankOrder> list_run_orders(const Program& program,
                                       const std::vector<std::vector<InstructionId>>& order);

/// The schedule with the orders that its ranks ran.
ValidSchedule reorder_schedule(const ValidSchedule& schedule, const Program& program,
                               const std::vector<std::vector<InstructionId>>& order);

/// Lets ranks choose by the policy of the Config; the order of the schedule is their hint. Throws
/// Error as expect_reorderable() and expect_independent_times() do.
ReadyStep run_by_readiness(const ValidSchedule& schedule, const Config& config);

}  // namespace bubblescope::inline sim

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

/// The rules of a policy for a predicted step.
ReadyRules make_ready_rules(const Prediction& fixed, ReadyPriority policy);

/// [rank]: the compute ops in the order of a run.
std::vector<RankOrder> list_run_orders(const Program& program, const ReadyRun& run);

/// Lets ranks choose by the policy of the Config; the order of the schedule is their hint. Throws
/// Error for what a policy cannot reorder, such as posted messages, copies and asynchronous
/// updates, and where the times of ops depend on others.
ReadyStep run_by_readiness(const ValidSchedule& schedule, const Config& config);

}  // namespace bubblescope::inline sim

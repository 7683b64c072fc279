// run --policy ready: what ranks may choose from, and the order that they chose.
#pragma once

#include <optional>
#include <vector>

#include "exec/runtime/ready_queue.h"
#include "tools/commands/measure.h"

namespace bubblescope::tools {

/// Throws Error where ranks cannot choose: on backends that enqueue whole steps, and for what a
/// policy cannot reorder (sim/predict/readiness.h).
void expect_policy_runs(const Schedule& schedule, const RunContext& context);

/// The policy of the options for a step that takes these durations; empty: ranks keep their order.
/// `memory` is that of the ops.
std::optional<exec::ReadyPolicy> make_policy(const TimedStep& step,
                                             const std::vector<Nanos>& durations,
                                             const MemoryModel& memory, const RunContext& context);

/// Gives the measurement the schedule and the Program in whose order the shown step ran, and all
/// its timelines the ids of that Program. Keeps those that it has where a rank did not report what
/// it ran.
void take_chosen_order(Measurement& measurement, ReadyPriority policy);

/// "policy ready:order: 12 of 128 ops ran at another place than in their rank's order; ..."; ends
/// in a newline.
std::string to_string(const ChosenOrders& chosen);

}  // namespace bubblescope::tools

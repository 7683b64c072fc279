// A plain interpreter of orders, which knows nothing of Programs, and what random schedules must
// satisfy beside it.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "sim/ir/lower.h"
#include "sim/ir/schedule.h"
#include "sim/ir/units.h"

namespace bubblescope::tests {

/// [op as text]: when it ended.
using OpEnds = std::map<std::string, Nanos>;

/// Every rank runs its ops in order, each when the stages that it reads, or that read it, and the
/// ops of its edges have ended, with a message's time between ranks. Pairs count as two ops. Empty
/// if ranks wait for each other.
std::optional<OpEnds> run_orders(const Schedule& schedule);

/// Expects that the dataflow pass and the event loop end every op as run_orders() does, not before
/// the lower bound, and that the native format keeps the schedule. Returns its Program.
Program expect_times_of_orders(const Schedule& schedule);

/// Expects that the verdict on each mode, which may come from a shortcut, is that of the lowered
/// Program.
void expect_verdicts_of_programs(const Schedule& schedule, LowerOptions options = {});

}  // namespace bubblescope::tests

// Finds and corrects the clocks of the ranks of each replica, over all its steps.
#pragma once

#include <cstdint>
#include <map>

#include "traces/files/trace_format.h"
#include "traces/measured/align_clocks.h"
#include "traces/measured/group_steps.h"
#include "traces/measured/rank_numbers.h"
#include "traces/measured/step_builder.h"

namespace bubblescope::traces {

using DraftSteps = std::map<StepKey, DraftStep>;
using ReplicaClocks = std::map<std::int32_t, ClockCorrection>;

/// Aligns the clocks of every replica's ranks.
ReplicaClocks find_clocks(const DraftSteps& drafts, std::int32_t ranks, const ObservedTrace& trace);

/// Adds a doubt where a clock differs by a good part of a step. Clocks of hosts differ by
/// milliseconds: such ranks rather began to record at different steps, so that the wrong ones were
/// put together.
void report_large_shifts(const ReplicaClocks& clocks, const DraftSteps& drafts,
                         ObservedTrace& trace);

/// Shifts the clock of every rank by its replica's correction, in everything that it recorded.
void set_clocks(const ReplicaClocks& clocks, const RankNumbers& numbers, DraftSteps& drafts,
                ObservedTrace& trace);

}  // namespace bubblescope::traces

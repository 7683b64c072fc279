// Finds and corrects the clocks of the ranks of each replica, over all its steps.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "traces/files/trace_format.h"
#include "traces/measured/align_clocks.h"
#include "traces/measured/build_step.h"
#include "traces/measured/group_steps.h"
#include "traces/measured/rank_numbers.h"

namespace bubblescope::traces {

using DraftSteps = std::map<StepKey, DraftStep>;
using ReplicaClocks = std::map<std::int32_t, ClockCorrection>;

/// Aligns the clocks of every replica's ranks. Throws Error where those of several files differ and
/// no backward allows to align them.
ReplicaClocks find_clocks(const DraftSteps& drafts, std::int32_t ranks, const ObservedTrace& trace);

/// Says, in a whole sentence, where a clock differs by a good part of a step; nullopt where none
/// does. Clocks of hosts differ by milliseconds: such ranks rather began to record at different
/// steps, so that the wrong ones were put together.
std::optional<std::string> describe_large_shift(const ReplicaClocks& clocks,
                                                const DraftSteps& drafts);

/// Shifts the clock of every rank by its replica's correction, in all ops that it recorded.
DraftSteps set_clocks(DraftSteps drafts, const ReplicaClocks& clocks);

/// Shifts the clocks likewise in all activities.
std::vector<ObservedActivity> set_clocks(std::vector<ObservedActivity> activities,
                                         const ReplicaClocks& clocks, const RankNumbers& numbers);

}  // namespace bubblescope::traces

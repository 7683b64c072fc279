// Refuses traces that one run of a job cannot have left.
#pragma once

#include <optional>
#include <string>

#include "traces/files/trace_format.h"
#include "traces/measured/rank_numbers.h"

namespace bubblescope::traces {

/// Throws Error where an op lies over 100 days from the first one. Clocks may start anywhere, but
/// the ops of one trace lie within days.
void expect_times(const ObservedTrace& trace);

/// Throws Error where two recorders have the same op of one rank, as the files of two runs do.
void expect_one_run(const ObservedTrace& trace, const RankNumbers& numbers);

/// Throws Error where the ops of ranks state their steps, and no rank has a step of all others.
void expect_common_step(const ObservedTrace& trace, const RankNumbers& numbers);

/// Throws Error where replicas never run at the same time by one clock: that of their host or file,
/// or clocks that tell the date. Returns a reservation where their clocks may differ; nullopt where
/// they run together.
std::optional<std::string> expect_replicas_together(const ObservedTrace& trace);

/// Says that a rank ends long before another one of its pipeline begins, by the clock of their
/// host; empty where none does.
std::string describe_ranks_apart(const ObservedTrace& trace);

}  // namespace bubblescope::traces

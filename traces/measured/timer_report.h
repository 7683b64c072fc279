// Adds the lines of a report of timers to the run that printed it.
#pragma once

#include <cstddef>
#include <string_view>

#include "traces/measured/timer_fields.h"
#include "traces/measured/timer_run.h"

namespace bubblescope::traces {

/// Add a timer, or what one rank has of it. `line` is the number of the line. A report with a
/// number that cannot be read is left out: the first one is noted.
void add_range(TimerRun& run, const TimerField& field, std::size_t line);
void add_largest(TimerRun& run, const TimerField& field, std::size_t line);
void add_rank(TimerRun& run, const TimerField& field, std::size_t line);

/// Begins a timer whose ranks follow, one in a line.
void begin_timer(TimerRun& run, std::string_view name);

/// Adds a timer whose value is lost, which garbles its report, or is there and no number.
void add_cut(TimerRun& run, const TimerField& field, std::size_t line);

}  // namespace bubblescope::traces

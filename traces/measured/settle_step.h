// Looks for what is impossible in the times of a whole step, as our own files have it.
#pragma once

#include "traces/files/trace_format.h"
#include "traces/measured/step_builder.h"

namespace bubblescope::traces {

/// Lets ops end where the next one of their lane starts, because a lane runs one at a time; so that
/// no idle time is counted twice. Notes the largest such overlap, and the op that begins earliest
/// before its input has ended; its times are used as they are. Steps that broke down are left
/// alone.
void settle_whole_step(MeasuredStep& step, Corrections& corrections);

}  // namespace bubblescope::traces

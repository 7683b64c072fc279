// Serving: how soon a forward-only step answers each micro-batch, and how many it serves.
#pragma once

#include <span>

#include "sim/analysis/report.h"
#include "sim/ir/timeline.h"
#include "sim/ir/valid_schedule.h"

namespace bubblescope::inline sim {

/// Returns the time to first token of every micro-batch: from its arrival to the end of the last
/// of its forwards, which produces the token. Requires a forward-only schedule and one arrival per
/// micro-batch.
ServingReport measure_serving(const ValidSchedule& schedule, const Program& program,
                              const Timeline& timeline, std::span<const Nanos> arrivals);

}  // namespace bubblescope::inline sim

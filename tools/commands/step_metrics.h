// The numbers of a predicted step that --fail-if can name.
#pragma once

#include <vector>

#include "tools/commands/gate.h"
#include "tools/inputs/predict.h"

namespace bubblescope::tools {

/// The numbers of the report; with a model `mfu` and `head_room_bytes`, and with noise
/// `noise_p50_ns`, `noise_p95_ns` and `noise_mean_ns`.
Metrics collect_step_metrics(const TimedStep& step);

/// Says that conditions look at the step without noise, where there is noise and a condition does
/// not name it.
void warn_of_noise(const BubbleReport& report, const std::vector<Condition>& conditions);

}  // namespace bubblescope::tools

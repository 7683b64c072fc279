// Fits the times of messages to measured steps.
#pragma once

#include <span>

#include "sim/analysis/job_program.h"
#include "sim/model/cost_table.h"

namespace bubblescope::inline sim {

/// Sets the latency of messages to the median of those that did not wait for their receiver. A link
/// between two ranks whose median is far from that has an entry of its own. `stages` of the table
/// must be set.
void fit_messages(std::span<const ReplicatedStep> steps, CostTable& table);

}  // namespace bubblescope::inline sim

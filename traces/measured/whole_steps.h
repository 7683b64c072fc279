// Computes the step that users wait for: the slowest replica's, with what runs before and after the
// pipeline's ops (gathering parameters, reducing gradients, the optimizer).
#pragma once

#include <vector>

#include "traces/files/trace_format.h"
#include "traces/measured/replica_step.h"

namespace bubblescope::traces {

/// Returns one entry per step, in order.
std::vector<WholeStep> find_whole_steps(const std::vector<ObservedActivity>& activities,
                                        const PipelineExtents& pipelines);

}  // namespace bubblescope::traces

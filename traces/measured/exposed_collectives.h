// Communication outside the pipeline: gradients are reduced and parameters gathered while no op of
// the pipeline runs.
#pragma once

#include <vector>

#include "sim/analysis/causes.h"
#include "traces/files/trace_format.h"

namespace bubblescope::traces {

/// One cause for each collective whose name says that it is one (all-gather, reduce_scatter,
/// AllReduce and the like). A collective ends on all ranks together, so its shortest time on any
/// rank is its transfer time; the rest is waiting. Only the part outside the pipeline counts. Empty
/// if there are no whole steps.
std::vector<Cause> find_exposed_collectives(const std::vector<ObservedWork>& works,
                                            const std::vector<WholeStep>& steps);

}  // namespace bubblescope::traces

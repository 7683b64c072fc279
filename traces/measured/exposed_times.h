// Communication outside the pipeline: gradients are reduced and parameters gathered while no op of
// the pipeline runs.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "sim/ir/units.h"
#include "traces/files/trace_format.h"

namespace bubblescope::traces {

/// Returns the times in every step of those collectives whose name says that they are one
/// (all-gather, reduce_scatter, AllReduce and the like). A collective ends on all ranks together,
/// so its shortest time on any rank is its transfer time; the rest is waiting. Only the part
/// outside the pipeline counts. Empty if there are no whole steps.
std::map<std::string, std::vector<Nanos>> find_exposed_times(
    const std::vector<ObservedActivity>& activities, const std::vector<WholeStep>& steps);

}  // namespace bubblescope::traces

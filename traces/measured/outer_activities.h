// Says which workers wait for each other in the activities around a pipeline's ops, so that whole
// steps can be replayed.
#pragma once

#include <cstdint>
#include <vector>

#include "traces/files/trace_format.h"
#include "traces/measured/replica_step.h"

namespace bubblescope::traces {

/// The activities of the steps in `pipelines`. Empty unless their names are Megatron's, and every
/// step has the same activities.
OuterActivities find_outer_activities(const std::vector<ObservedActivity>& activities,
                                      const PipelineExtents& pipelines,
                                      const std::vector<std::int32_t>& rank_of_recorder);

}  // namespace bubblescope::traces

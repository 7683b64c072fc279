// Computes the step that users wait for: the slowest replica's, with what runs before and after the
// pipeline's ops (gathering parameters, reducing gradients, the optimizer).
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "traces/files/trace_format.h"

namespace bubblescope::traces {

/// The first start and the last end of one replica's ops in a step, by (replica, step).
struct StepExtent {
  Nanos start = 0;
  Nanos end = 0;
};
using StepExtents = std::map<std::pair<std::int32_t, std::int64_t>, StepExtent>;

/// Returns one entry per step, in order. Where ranks mark their steps (ProfilerStep#N), a step is
/// as long as its longest mark, because ranks enter and leave it at different times. Otherwise it
/// reaches from the first start to the last end.
std::vector<WholeStep> find_whole_steps(const std::vector<ObservedWork>& works,
                                        const StepExtents& pipelines);

}  // namespace bubblescope::traces

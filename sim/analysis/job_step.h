// The step of a whole job: data-parallel pipelines, and what runs around them.
#pragma once

#include <cstdint>

#include "sim/ir/units.h"

namespace bubblescope::inline sim {

/// The step that users wait for, where costs tell more of it than one pipeline.
struct JobStep {
  std::int32_t replicas = 1;   ///< data-parallel pipelines; the step ends with the slowest
  Nanos outside_pipeline = 0;  ///< what runs, or is waited for, before and after the slowest one
  Nanos step = 0;              ///< the whole step: its mean under noise
};

}  // namespace bubblescope::inline sim

// Samples: the measured time of every op of every step, with its place.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "sim/analysis/slowdown.h"

namespace bubblescope::inline sim {

/// One op on one micro-batch with its whole sequence: the slices of an op are one sample.
struct OpSample {
  std::size_t step = 0;
  std::size_t replica = 0;
  std::int32_t rank = 0;
  std::int32_t stage = 0;  ///< the stage within its pipeline, if a schedule has two
  std::int32_t microbatch = 0;
  OpKind kind = OpKind::kForward;
  double time = 0;  ///< in nanoseconds
};

/// The samples of all steps, step by step. `stages` is the number of stages of one pipeline.
std::vector<OpSample> collect_samples(std::span<const ReplicatedStep> steps, std::int32_t stages);

}  // namespace bubblescope::inline sim

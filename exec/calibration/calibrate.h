// From measured steps to costs: how long the ops of every stage take, and what lies between them.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "sim/ir/op.h"
#include "sim/ir/timeline.h"

namespace bubblescope {

/// A mean and how well it is known.
struct Estimate {
  Nanos mean = 0;        ///< without the longest and the shortest tenth
  Nanos half_width = 0;  ///< of the 95 % confidence interval of the plain mean
  double jitter = 0;     ///< standard deviation of one sample, as a fraction of the mean
  std::int64_t samples = 0;
};

/// Empty for no samples.
std::optional<Estimate> estimate(std::vector<Nanos> samples);

/// What a stage does once per update; empty where no run had it.
struct UpdateEstimate {
  std::optional<Estimate> optimizer;
  std::optional<Estimate> reduce_grad;  ///< where several ranks hold the stage's weights
};

/// What some runs of schedules with the same stages have in common.
struct Calibration {
  /// [stage][kind]; empty where no run had such an op.
  std::vector<std::array<std::optional<Estimate>, kComputeKinds>> ops;
  std::vector<UpdateEstimate> updates;  ///< [stage]
  /// From the end of a producer to the start of the op on another rank that waited only for it.
  std::optional<Estimate> message;
  /// From the end of an op to the start of the next one of its rank that was ready by then.
  std::optional<Estimate> between_ops;
};

/// The steps of one schedule.
struct Observation {
  const Program& program;
  std::span<const Timeline> steps;
};

Calibration calibrate(std::span<const Observation> observations, std::int32_t stages);

}  // namespace bubblescope

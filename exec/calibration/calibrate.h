// Estimates costs from measured steps: the durations of every stage's ops, and the delays between
// them.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "sim/ir/op.h"
#include "sim/ir/timeline.h"

namespace bubblescope::exec {

/// The mean of some samples and its uncertainty.
struct Estimate {
  Nanos mean = 0;        ///< without the longest and the shortest tenth
  Nanos half_width = 0;  ///< of the 95 % confidence interval of the plain mean
  double jitter = 0;     ///< standard deviation of one sample, as a fraction of the mean
  std::int64_t samples = 0;
};

/// Empty if there are no samples.
std::optional<Estimate> estimate(std::vector<Nanos> samples);

/// The instructions that a stage runs once per update; empty if no run had them.
struct UpdateEstimate {
  std::optional<Estimate> optimizer;
  std::optional<Estimate> reduce_grad;  ///< if several ranks hold the stage's weights
};

/// The estimates from all runs of schedules with the same stages.
struct Calibration {
  /// [stage][kind]; empty if no run had such an op.
  std::vector<std::array<std::optional<Estimate>, kComputeKinds>> ops;
  std::vector<UpdateEstimate> updates;  ///< [stage]
  /// The delay from the end of a producer to the start of an op on another rank that waited only
  /// for it.
  std::optional<Estimate> message;
  /// The op gap: the delay from the end of an op to the start of the rank's next op, if that was
  /// ready by then.
  std::optional<Estimate> op_gap;
};

/// The measured steps of one schedule.
struct Observation {
  const Program& program;
  std::span<const Timeline> steps;
};

Calibration calibrate(std::span<const Observation> observations, std::int32_t stages);

}  // namespace bubblescope::exec

// Known errors: how far uncalibrated predictions were from the measured step times of published
// runs.
//
// The error of a run is predicted over measured step time, minus 1: -0.2 means that the prediction
// is 20 % too short. A new prediction is assumed to be as accurate as those of the nearest runs,
// which are those on the same device with the same type of model: dense, or mixture of experts. The
// measured time is then expected between step / (1 + highest) and step / (1 + lowest).
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "sim/ir/units.h"
#include "sim/model/layer_cost.h"

namespace bubblescope::inline sim {

struct KnownErrors {
  std::string_view device;
  bool experts = false;
  int runs = 0;
  double lowest = 0;
  double middle = 0;  ///< the median
  double spread = 0;  ///< median absolute deviation; plans this close are ties
  double highest = 0;
  std::string_view source;

  /// The class of runs, as it appears in reports: "h100/megatron/bf16".
  std::string from() const;
};

/// The range in which the measured step time is expected, from the errors of the nearest published
/// runs.
struct StepInterval {
  Nanos low = 0;
  Nanos high = 0;
};

/// The median relative error of predicted memory on published runs. A plan that leaves a smaller
/// fraction of its peak free may not fit.
inline constexpr double kMemoryError = 0.028;

/// The errors of the nearest runs; null if no run on this device has been compared, or if the
/// prediction is calibrated with a slowdown.
const KnownErrors* find_nearest_errors(const ModelOnDevices& on);

StepInterval compute_interval(Nanos step, const KnownErrors& errors);

}  // namespace bubblescope::inline sim

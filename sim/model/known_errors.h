// Known errors: how far uncalibrated predictions were from published runs.
//
// The error of a run is predicted over measured step time, minus 1: -0.2 means that the prediction
// is a fifth too short. A prediction is assumed to be as good as those of the nearest runs: the
// same device, and a model with or without experts. The measured time is then expected between step
// / (1 + highest) and step / (1 + lowest).
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
  double spread = 0;  ///< the median distance from the median: plans this close are ties
  double highest = 0;
  std::string_view source;

  /// The class of runs: "h100/megatron/bf16".
  std::string from() const;
};

/// The range of the measured step time, by the errors of the nearest published runs.
struct StepInterval {
  Nanos low = 0;
  Nanos high = 0;
};

/// Of predicted memory over that of published runs, the median distance from 1: a plan that leaves
/// less of its peak free may not fit.
inline constexpr double kMemoryError = 0.028;

/// Those of the device; nothing where no run on it has been compared, or where a slowdown says that
/// the prediction is calibrated.
const KnownErrors* find_nearest_errors(const ModelOnDevices& on);

StepInterval compute_interval(Nanos step, const KnownErrors& errors);

}  // namespace bubblescope::inline sim

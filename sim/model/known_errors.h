// Known errors: how far predictions were from the measured step times of published runs.
//
// The error of a run is predicted over measured step time, minus 1: -0.2 means that the prediction
// is 20 % too short. Each run's source was left out when the constants behind its prediction were
// fitted, so the errors are those of runs that no fit had seen. A new prediction is assumed to
// be as accurate as those of the nearest class of runs: of its generation of devices, its runtime,
// its type of model (dense, or mixture of experts) and its precision. Nine in ten of these runs
// took between step / (1 + highest) and step / (1 + lowest).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "sim/ir/units.h"
#include "sim/model/layer_cost.h"

namespace bubblescope::inline sim {

/// A class of runs. Empty names stand for all.
struct KnownErrors {
  std::string_view generation;  ///< of the devices: "hopper"
  std::string_view runtime;
  bool experts = false;
  std::string_view precision;  ///< "bf16" or "fp8"
  int runs = 0;
  double lowest = 0;  ///< one in twenty runs, each source weighing the same, is below
  double middle = 0;  ///< the median
  /// The median distance of a run's error from the median of its source, over all classes: by how
  /// much the errors of one setup differ among themselves. Plans this close are ties.
  double spread = 0;
  double highest = 0;  ///< one in twenty is above

  /// The class of runs, as it appears in reports: "hopper/nemo/bf16/dense".
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
inline bool is_tight(Bytes peak, Bytes head_room) {
  return static_cast<double>(head_room) < kMemoryError * static_cast<double>(peak);
}

/// The longest sequences of the runs, in tokens.
inline constexpr std::int64_t kMaxPublishedSequence = 131'072;

/// The errors of the nearest runs, or why they say nothing about a prediction: it is calibrated, it
/// has other constants than those that the errors were measured with, something else changes its
/// step, or no run comes near it.
struct NearestErrors {
  const KnownErrors* known = nullptr;  ///< null where `why_none` gives the reason
  std::string why_none;                ///< empty if they hold
  /// The prediction's schedule, where none of the runs of such models had it; empty if one had it,
  /// or if nothing is known.
  std::string unpublished_schedule = {};
};

/// Returns the schedule where no published run of such a model had it. Empty where one had, on one
/// rank, where the order of ops changes little, and for an order of the user's own.
std::string find_unpublished_schedule(std::string_view schedule, std::int32_t ranks, bool experts);

/// Finds the errors of the nearest class of runs, in about the time of estimating a layer.
NearestErrors find_nearest_errors(const ModelOnDevices& on);

StepInterval compute_interval(Nanos step, const KnownErrors& errors);

}  // namespace bubblescope::inline sim

// Evidence of causes that the measured ops show before any replay: how much they differ, whether
// speeds have changed for good, and which workers are slow.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "sim/analysis/chance.h"
#include "sim/analysis/coupled_replay.h"
#include "sim/analysis/fit_noise.h"
#include "sim/analysis/op_samples.h"
#include "sim/analysis/slow_workers.h"

namespace bubblescope::inline sim {

struct CauseEvidence {
  /// Refers to the steps.
  explicit CauseEvidence(std::span<const ReplicatedStep> measured);
  CauseEvidence(const CauseEvidence&) = delete;
  CauseEvidence& operator=(const CauseEvidence&) = delete;

  /// Whether a worker's own speed has changed for good.
  bool has_drifted(const Worker& worker) const;
  /// Whether it is one of `slow_workers`.
  bool is_slow(const Worker& worker) const;
  /// Divides the durations of every sample's ops by its factor.
  Counterfactual shorten(std::span<const double> factors) const;

  std::span<const ReplicatedStep> steps;
  std::vector<OpSample> samples;
  FittedNoise noise;
  Chance chance;
  std::optional<Drift> drift;
  std::optional<Workers> workers;  ///< empty with one replica, which nothing is compared with
  std::vector<SlowWorker> slow_workers;
};

}  // namespace bubblescope::inline sim

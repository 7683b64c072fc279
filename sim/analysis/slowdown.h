// Slowdown S: how much slower a job's steps are than if every op took the mean time of its kind, by
// the definitions of StragglerAnalysis (Lin et al. 2025, arXiv 2505.05713).
//
// A *worker* is one rank of one replica. T is the time of a step that is replayed with its ops' own
// durations; it ends with the slowest of its data-parallel replicas. *Fixing* a compute op gives it
// the mean duration of its kind in the step, over all replicas and stages; fixing a message gives
// it the median of its kind. The mean conserves work, so it is what balancing can reach.
//   S        T over the time with all ops fixed
//   S of x   the time with all ops but those of x fixed, over the time with all ops fixed
//   M_W      the part of T's excess that vanishes when the slowest 3 % of the workers are fixed
//   M_S      the same for the last stage
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "sim/analysis/stragglers.h"

namespace bubblescope::inline sim {

/// The data-parallel replicas of one step, which synchronize at its end. All have the same ranks.
using ReplicatedStep = std::vector<ObservedStep>;

struct WorkerSlowdown {
  std::int32_t replica = 0;  ///< counted from 0
  std::int32_t rank = 0;
  double slowdown = 1;  ///< S
};

struct SlowdownReport {
  double slowdown = 1;                                       ///< S
  Nanos replayed = 0;                                        ///< mean T
  Nanos fixed = 0;                                           ///< mean time with all ops fixed
  std::array<std::optional<double>, kComputeKinds> by_kind;  ///< empty for kinds without ops
  std::vector<WorkerSlowdown> by_worker;                     ///< by replica and rank
  std::vector<double> by_stage;                              ///< [rank], over all replicas
  std::vector<std::vector<double>> by_step;  ///< [step]: S of each worker in that step alone
  double worker_share = 0;                   ///< M_W; 0 if nothing can be gained
  double last_stage_share = 0;               ///< M_S
};

/// Averages over the steps. Requires at least one step, and the same number of replicas in every
/// step.
SlowdownReport find_slowdown(std::span<const ReplicatedStep> steps);

}  // namespace bubblescope::inline sim

// Replays whole steps with some durations changed. A step ends with its slowest replica; where the
// activities around the ops are known (sim/analysis/job_program.h), they run as well, and replicas
// wait for each other in their collectives.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "sim/analysis/job_program.h"

namespace bubblescope::inline sim {

/// The durations of one replica's instructions in one step.
using Durations = std::vector<Nanos>;

/// Whether messages keep the time for which they waited for an op of their receiver to end. Without
/// it they have their own time (sim/analysis/job_program.h), and a receiver that is faster takes
/// them sooner.
enum class Waiting : std::uint8_t { kKept, kDropped };

/// Returns the measured durations of every replica.
std::vector<Durations> as_measured(const ReplicatedStep& step);

/// The durations that the replicas of a step would have without a cause; `at` is the index of the
/// step. Counterfactuals can be applied one after the other.
using Counterfactual = std::function<std::vector<Durations>(
    std::size_t at, const ReplicatedStep& step, std::vector<Durations> durations)>;

/// Returns the measured durations of every replica of the step at this index, after these
/// counterfactuals in their order.
std::vector<Durations> apply_counterfactuals(std::span<const ReplicatedStep> steps, std::size_t at,
                                             std::span<const Counterfactual> counterfactuals);

/// All replicas of every step. Refers to the steps.
class CoupledSteps {
 public:
  /// `activities`: per step, what runs besides the ops; empty where that is not known.
  explicit CoupledSteps(std::span<const ReplicatedStep> steps,
                        std::span<const std::vector<OuterActivity>> activities = {});

  std::span<const ReplicatedStep> steps() const { return steps_; }

  /// The time of every step when its replicas are replayed with their measured durations, after
  /// these counterfactuals in their order.
  std::vector<double> replay(Waiting waiting,
                             std::span<const Counterfactual> counterfactuals) const;

 private:
  std::span<const ReplicatedStep> steps_;
  std::vector<JobProgram> programs_;  ///< [step]
};

}  // namespace bubblescope::inline sim

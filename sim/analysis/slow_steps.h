// Finds workers that are slow in some steps only, which no median over all steps shows. Their time
// must not count as an unequal stage, which is unequal in every step.
//
// A worker's *relative time* in a step is its computing time over its usual one, divided by the
// same ratio of the other ranks of its replica: longer micro-batches are longer on all of them. A
// worker is slow where its relative time is over 1.1 and beyond the usual spread of all relative
// times. If it is slow in most steps, its few fast ones are the usual ones. A worker whose relative
// time grows from step to step, as that of a device does which throttles, is slow compared to its
// first steps.
//
// Steps may also be slow on all ranks, such as the first ones while things warm up. No worker's
// relative time shows that.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/analysis/coupled_replay.h"
#include "sim/analysis/fit_noise.h"

namespace bubblescope::inline sim {

struct SlowSteps {
  Worker worker;
  std::vector<double> relative_times = {};  ///< [step], 1 where the worker is not slow
  std::int64_t steps = 0;                   ///< in which it is slow
  double factor = 1;   ///< its mean relative time in these; if it grows, the last one
  bool grows = false;  ///< whether its relative time grows from step to step
};

/// The workers that lose the most time come first. `counterfactuals` are applied before. None if
/// there are fewer than four steps, or one rank.
std::vector<SlowSteps> find_slow_steps(std::span<const ReplicatedStep> steps,
                                       std::span<const Counterfactual> counterfactuals);

/// The steps in which more than three quarters of the workers are slow.
struct CommonSlowSteps {
  /// [step][worker], workers by replica and rank; empty where the step is not slow.
  std::vector<std::vector<double>> relative_times = {};
  std::int64_t steps = 0;  ///< that are slow
  double factor = 1;       ///< the mean of their median relative times
  bool are_first = false;  ///< whether they are the first steps
};

/// `counterfactuals` are applied before. None if there is only one step.
CommonSlowSteps find_common_slow_steps(std::span<const ReplicatedStep> steps,
                                       std::span<const Counterfactual> counterfactuals);

/// Makes every worker as fast as in the other steps.
Counterfactual with_usual_time(const CommonSlowSteps& slow);

/// Makes the worker as fast as in its other steps.
Counterfactual with_usual_time(const SlowSteps& slow);

}  // namespace bubblescope::inline sim

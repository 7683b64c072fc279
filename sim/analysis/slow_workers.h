// The op durations of every worker (one rank of one replica), and how they compare with those of
// the same stage in other replicas.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "sim/analysis/cause_facts.h"
#include "sim/analysis/coupled_replay.h"
#include "sim/analysis/relative_times.h"

namespace bubblescope::inline sim {

/// How slow a worker is clearly: it must not count as an unequal stage as well.
inline constexpr double kClearlySlow = 1.1;

/// A worker that is slower than its stages in other replicas.
struct SlowWorker {
  Worker worker = {};
  double factor = 1;       ///< how many times as long it takes
  std::int64_t steps = 0;  ///< those in which it is over 2 % slower
};

/// Joins slow workers into one cause, the slowest first.
SlowWorkers join_workers(const std::vector<SlowWorker>& workers, std::int32_t ranks);

class Workers {
 public:
  /// Refers to the steps.
  explicit Workers(std::span<const ReplicatedStep> steps);

  /// Returns the workers that are more than 2 % slower, and by more than the fraction `chance`, the
  /// slowest first.
  std::vector<SlowWorker> slow(double chance) const;

  /// Makes these workers as fast as the others. A worker that is slower in some steps than in
  /// others, as a device is that throttles, becomes as much faster in each. Refers to the workers.
  Counterfactual with_usual_speed(const std::vector<Worker>& slow) const;

 private:
  using StageKind = std::pair<std::int32_t, OpKind>;

  /// A stage's usual time in the other replicas, and how many times as long it takes in this one.
  struct Comparison {
    double usual = 0;  ///< 0 if there is nothing to compare
    double factor = 1;
  };

  static Comparison compare(const std::vector<std::vector<Nanos>>& of_replicas,
                            std::size_t replica);
  double factor(std::size_t replica, const Op& op) const;
  /// How many times as long each worker takes as its stages do in the other replicas.
  RelativeTimes find_relative_times() const;
  /// [replica]: whether its ranks have a common relative time that differs from step to step by
  /// more than chance and unlike that of the other replicas.
  std::vector<bool> find_changing_replicas(const RelativeTimes& relative_times) const;
  /// Fills in the shares of slow workers whose relative times differ from step to step by more than
  /// those of most workers do.
  void compare_steps();
  /// How much slower the worker is in a step, beside how much slower it is in all: 1 if steps do
  /// not differ.
  double share_of_step(const Worker& worker, std::size_t step) const;
  double slowness(const Worker& worker) const;
  std::int64_t count_slow_steps(const Worker& worker) const;

  std::span<const ReplicatedStep> steps_;
  std::size_t replicas_;
  std::map<StageKind, std::vector<std::vector<Nanos>>> times_;  ///< [replica]
  std::map<std::pair<std::size_t, StageKind>, Comparison> compared_;
  std::map<Worker, std::vector<double>> shares_;  ///< [step]: see share_of_step()
};

}  // namespace bubblescope::inline sim

// The op durations of every worker (one rank of one replica), and how they compare with those of
// the same stage in other replicas.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "sim/analysis/causes.h"
#include "sim/analysis/coupled_replay.h"

namespace bubblescope::inline sim {

/// How slow a worker is clearly: it must not count as an unequal stage as well.
inline constexpr double kClearlySlow = 1.1;

/// One cause of several slow workers, the slowest first.
Cause join_workers(const std::vector<Cause>& workers, std::int32_t ranks);

class Workers {
 public:
  /// Refers to the steps.
  explicit Workers(std::span<const ReplicatedStep> steps);

  /// The workers that are more than 2 % slower, and by more than the fraction `chance`, the slowest
  /// first.
  std::vector<Cause> slow(double chance) const;

  /// Makes this worker, or all that the cause has, as fast as the others.
  void mend(const ReplicatedStep& step, const Cause& cause,
            std::vector<Durations>& durations) const;

 private:
  using StageKind = std::pair<std::int32_t, OpKind>;

  static double compare(const std::vector<std::vector<Nanos>>& of_replicas, std::size_t replica);
  double factor(std::size_t replica, const Op& op) const;
  double slowness(const Cause& worker) const;
  std::int64_t count_slow_steps(const Cause& worker) const;

  std::span<const ReplicatedStep> steps_;
  std::size_t replicas_;
  std::map<StageKind, std::vector<std::vector<Nanos>>> times_;  ///< [replica]
  std::map<std::pair<std::size_t, StageKind>, double> factors_;
};

}  // namespace bubblescope::inline sim

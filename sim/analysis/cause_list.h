// The causes found so far, and what removing each of them saves.
//
// A cause is compared with the *base*: all steps, replayed with the counterfactuals of those causes
// that must not count as others as well. The base grows while causes are sought.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "sim/analysis/cause.h"
#include "sim/analysis/coupled_replay.h"

namespace bubblescope::inline sim {

struct RemovableCause {
  Cause cause;
  Counterfactual counterfactual;  ///< removes it
};

class CauseList {
 public:
  /// Refers to the steps.
  explicit CauseList(const CoupledSteps& coupled);

  std::span<const ReplicatedStep> steps() const { return steps_; }
  std::size_t replicas() const { return steps_.front().size(); }
  const std::vector<Counterfactual>& base() const { return base_; }
  /// Returns the time of every step with these counterfactuals alone.
  std::vector<double> replay(const std::vector<Counterfactual>& counterfactuals) const;
  /// The mean time of the replayed steps as they were measured.
  double replayed() const;
  /// How much shorter the counterfactual makes the mean step of the base.
  double time_saved(const Counterfactual& counterfactual) const;

  /// Adds a cause if removing it makes the mean step of the base shorter. Returns whether it does.
  bool add(const Cause& cause, const Counterfactual& counterfactual);
  /// Adds causes that may hide each other: as one if removing all saves more than removing each
  /// alone, else one by one. Their counterfactual is that of all.
  void add_joined(std::span<const RemovableCause> singles, const RemovableCause& all);
  /// Does the same as add(), for given times of the steps with the cause and without it.
  bool add_compared(Cause cause, const std::vector<double>& with,
                    const std::vector<double>& without);
  /// From now on causes are compared with steps without this kind of cause.
  void take_as_base(CauseKind kind, const Counterfactual& counterfactual);

  bool has(CauseKind kind) const;
  /// Returns the time that is saved if all causes are removed at once.
  Nanos find_saved_together() const;
  /// Returns the causes, those that save most first.
  std::vector<Cause> rank() &&;

 private:
  std::vector<double> replay_with(const Counterfactual& counterfactual) const;
  bool compare_with_base(const Cause& cause, const Counterfactual& counterfactual);

  const CoupledSteps& coupled_;
  std::span<const ReplicatedStep> steps_;
  std::vector<double> replayed_;
  std::vector<Counterfactual> base_;
  std::vector<CauseKind> removed_;  ///< by the base, each once
  std::vector<double> base_times_;
  /// Those of the causes, in an order in which they can be applied.
  std::vector<Counterfactual> counterfactuals_;
  std::vector<Cause> causes_;
};

}  // namespace bubblescope::inline sim

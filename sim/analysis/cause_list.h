// The causes found so far, and what removing each of them saves.
//
// A cause is compared with the *base*: all steps, replayed with the mends of those causes that must
// not count as others as well. The base grows while causes are sought.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "sim/analysis/causes.h"
#include "sim/analysis/coupled_replay.h"

namespace bubblescope::inline sim {

struct MendedCause {
  Cause cause;
  Mend mend;  ///< removes it
};

class CauseList {
 public:
  /// Refers to the steps.
  explicit CauseList(const CoupledSteps& coupled);

  std::span<const ReplicatedStep> steps() const { return steps_; }
  std::size_t replicas() const { return steps_.front().size(); }
  const std::vector<Mend>& base() const { return base_; }
  /// The time of every step with these mends alone.
  std::vector<double> replay(const std::vector<Mend>& mends) const;
  /// The mean time of the replayed steps, without any mend.
  double replayed() const;
  /// How much shorter the mend makes the mean step of the base.
  double time_saved(const Mend& mend) const;

  /// Adds a cause if its mend makes the mean step of the base shorter. Returns whether it does.
  bool add(const Cause& cause, const Mend& mend);
  /// Adds causes that may hide each other: as one if mending all saves more than mending each
  /// alone, else one by one. Their mend is that of all.
  void add_joined(std::span<const MendedCause> singles, const MendedCause& all);
  /// The same as add() for times of the steps with the cause and without it.
  bool add_compared(Cause cause, const std::vector<double>& with,
                    const std::vector<double>& without);
  /// From now on causes are compared with steps without this kind of cause.
  void take_as_base(CauseKind kind, const Mend& mend);

  bool has(CauseKind kind) const;
  /// The time that removing all causes at once saves.
  Nanos find_saved_together() const;
  /// The causes, those that save most first.
  std::vector<Cause> rank() &&;

 private:
  std::vector<double> replay_with(const Mend& mend) const;
  bool compare_with_base(const Cause& cause, const Mend& mend);

  const CoupledSteps& coupled_;
  std::span<const ReplicatedStep> steps_;
  std::vector<double> replayed_;
  std::vector<Mend> base_;
  std::vector<CauseKind> mended_;  ///< by the base, each once
  std::vector<double> base_times_;
  std::vector<Mend> mends_;  ///< of the causes, in an order in which they can be applied
  std::vector<Cause> causes_;
};

}  // namespace bubblescope::inline sim

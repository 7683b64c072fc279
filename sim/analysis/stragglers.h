// Stragglers: which ranks, stages and ops are slow, and the step time if they were not. Measured
// steps are replayed with some durations replaced by medians.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "sim/ir/schedule.h"
#include "sim/ir/timeline.h"

namespace bubblescope {

/// One measured step; refers to its Program and Timeline.
struct ObservedStep {
  const Program& program;
  const Timeline& timeline;
};

/// A stage's speed for one kind of op, compared with all other stages.
struct StageSpeed {
  std::int32_t stage = 0;
  std::int32_t rank = 0;
  OpKind kind = OpKind::kForward;
  Nanos median = 0;
  Nanos others = 0;  ///< the median over the other stages
  double slowness() const {
    return others == 0 ? 1 : static_cast<double>(median) / static_cast<double>(others);
  }
};

/// An op that took much longer than the other ops of its stage and kind.
struct Outlier {
  std::size_t step = 0;  ///< index of the ObservedStep
  std::int32_t rank = 0;
  Op op;
  Nanos duration = 0;
  Nanos median = 0;  ///< of its stage and kind
};

struct StragglerReport {
  Nanos replayed = 0;              ///< mean makespan of the replays with the measured durations
  Nanos even = 0;                  ///< the same if every op takes the median of its kind
  std::vector<StageSpeed> stages;  ///< by stage and kind
  /// [rank]: mean makespan if the rank's ops take the median of the other ranks' ops of their kind
  /// in the same step. Empty if there is only one rank.
  std::vector<Nanos> without_rank;
  /// [kind]: mean makespan if only this kind takes its median on every stage; empty for kinds that
  /// do not occur.
  std::array<std::optional<Nanos>, kComputeKinds> without_kind;
  std::vector<Outlier> outliers;  ///< the worst first, at most ten

  double slowdown() const {
    return even == 0 ? 1 : static_cast<double>(replayed) / static_cast<double>(even);
  }
};

/// Replays every step once per question. All steps must have the same stages on the same ranks.
StragglerReport find_stragglers(std::span<const ObservedStep> steps);

}  // namespace bubblescope

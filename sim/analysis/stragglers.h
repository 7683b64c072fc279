// Who is slow: medians by stage and kind, and the ops that are far from them. What a step would
// take otherwise is in sim/analysis/causes.h.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/ir/schedule.h"
#include "sim/ir/timeline.h"

namespace bubblescope::inline sim {

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
  std::vector<StageSpeed> stages;  ///< by stage and kind
  std::vector<Outlier> outliers;   ///< the worst first, at most ten
};

/// All steps run the same stages on the same ranks.
StragglerReport find_stragglers(std::span<const ObservedStep> steps);

}  // namespace bubblescope::inline sim

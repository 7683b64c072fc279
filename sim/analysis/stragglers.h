// Finds stragglers: stages that are slower than the others, and single ops that took much longer
// than the other ops of their stage and kind. sim/analysis/causes.h estimates the time that they
// cost.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "sim/ir/schedule.h"
#include "sim/ir/timeline.h"

namespace bubblescope::inline sim {

/// One measured step. It refers to its Program and Timeline.
struct ObservedStep {
  const Program& program;
  const Timeline& timeline;
  /// The number of stages in the chain; those after it are side stages (Schedule::side_stages),
  /// which are compared with no stage.
  std::int32_t chain_stages = std::numeric_limits<std::int32_t>::max();
  Nanos delay = 0;  ///< by how much later than the earliest replica it begins

  bool is_on_side_stage(const Op& op) const { return op.stage >= chain_stages; }
  Nanos duration_of(InstructionId id) const { return timeline.end[id] - timeline.start[id]; }

  /// Calls visit(id, instruction) for every compute op, in the Program's order.
  template <class Visit>
  void for_each_compute(Visit visit) const {
    for (InstructionId id = 0; id < program.size(); ++id)
      if (is_compute(program.instructions[id].op.kind)) visit(id, program.instructions[id]);
  }
};

/// The speed of a stage for one kind of op, compared with all other stages.
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
  Nanos median = 0;  ///< the median of its stage and kind
};

struct StragglerReport {
  std::vector<StageSpeed> stages;  ///< sorted by stage and kind
  std::vector<Outlier> outliers;   ///< the worst first, at most ten
};

/// All steps run the same stages on the same ranks.
StragglerReport find_stragglers(std::span<const ObservedStep> steps);

}  // namespace bubblescope::inline sim

// Blockers: which instruction kept another one from starting earlier.
#pragma once

#include <optional>
#include <vector>

#include "sim/ir/program.h"
#include "sim/ir/timeline.h"

namespace bubblescope {

/// Finds the blocker of any instruction. Refers to the Program and the Timeline.
class Holders {
 public:
  Holders(const Program& program, const Timeline& timeline);

  /// The predecessor of `id`, in its lane or by dependency, that ended last; its lane wins ties.
  /// Empty if it has no predecessor.
  std::optional<InstructionId> holder(InstructionId id) const;

  /// The dependency of `id` that ended last; empty if it has none.
  std::optional<InstructionId> last_dependency(InstructionId id) const;

 private:
  const Program& program_;
  const Timeline& timeline_;
  std::vector<InstructionId> previous_in_lane_;
};

}  // namespace bubblescope

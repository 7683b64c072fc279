// Why an instruction did not start earlier.
#pragma once

#include <optional>
#include <vector>

#include "sim/ir/program.h"
#include "sim/ir/timeline.h"

namespace bubblescope {

/// Answers which instruction held another up. Refers to the Program and the Timeline.
class Holders {
 public:
  Holders(const Program& program, const Timeline& timeline);

  /// Whatever ended last before `id`, its own lane first; nothing where nothing came before.
  std::optional<InstructionId> holder(InstructionId id) const;

  /// Of what `id` depends on, what ended last; nothing where it depends on nothing.
  std::optional<InstructionId> last_dependency(InstructionId id) const;

 private:
  const Program& program_;
  const Timeline& timeline_;
  std::vector<InstructionId> previous_in_lane_;
};

}  // namespace bubblescope

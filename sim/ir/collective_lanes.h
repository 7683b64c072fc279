// What ranks do together, in a lane of its own on each of them, beside the compute ops.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/ir/program_draft.h"

namespace bubblescope {

/// One rank's part of a collective.
struct CollectivePart {
  Op op;
  std::int32_t rank = 0;
  std::vector<InstructionId> awaited;  ///< what must have ended on this rank
};

/// Adds collectives to a draft; a rank gets its lane with its first one, unless the draft has it.
class CollectiveLanes {
 public:
  /// Every lane is called `name`. The draft is not copied.
  CollectiveLanes(ProgramDraft& draft, std::string name);

  /// Something in the rank's lane.
  InstructionId add(const CollectivePart& part, Role role);

  /// A collective: it starts when all of its ranks have come to it, at once on all of them. Its
  /// instructions, in the order of the parts. Ranks must be given theirs in the same order, or they
  /// wait for each other for ever.
  std::vector<InstructionId> add_together(const std::vector<CollectivePart>& parts);

 private:
  void note(std::int32_t rank, std::uint32_t lane);
  std::uint32_t lane_of(std::int32_t rank);

  ProgramDraft& draft_;
  std::string name_;
  std::vector<std::optional<std::uint32_t>> lane_of_rank_;
};

}  // namespace bubblescope

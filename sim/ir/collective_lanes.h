// Collectives: ops that several ranks run together, each rank in a lane of its own beside the
// compute lane.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/ir/program_draft.h"

namespace bubblescope::inline sim {

/// One rank's part of a collective.
struct CollectivePart {
  Op op;
  std::int32_t rank = 0;
  std::vector<InstructionId> awaited;  ///< must have ended on this rank first
};

/// Adds collectives to a draft. A rank gets its lane with its first collective, unless the draft
/// has it already.
class CollectiveLanes {
 public:
  /// Every lane is called `name`. The draft is referenced, not copied.
  CollectiveLanes(ProgramDraft& draft, std::string name);

  /// Adds an instruction to the rank's lane.
  InstructionId add(const CollectivePart& part, Role role);

  /// Adds a collective, which starts at once on all of its ranks when the last of them has reached
  /// it. Returns its instructions in the order of the parts. Ranks must get their collectives in
  /// the same order, or they deadlock.
  std::vector<InstructionId> add_together(const std::vector<CollectivePart>& parts);

 private:
  void note(std::int32_t rank, std::uint32_t lane);
  std::uint32_t lane_of(std::int32_t rank);

  ProgramDraft& draft_;
  std::string name_;
  std::vector<std::optional<std::uint32_t>> lane_of_rank_;
};

}  // namespace bubblescope::inline sim

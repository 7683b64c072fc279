// A ProgramDraft collects instructions and dependencies in any order; finish() sorts them into a
// Program or returns a cycle of waits.
#pragma once

#include <map>
#include <utility>
#include <variant>
#include <vector>

#include "sim/ir/program.h"

namespace bubblescope::inline sim {

/// A Program and, per instruction, its id in the draft.
struct SortedDraft {
  Program program;
  std::vector<InstructionId> draft_ids;
};

class ProgramDraft {
 public:
  ProgramDraft(std::int32_t ranks, std::size_t expected_instructions);

  /// A draft that extends a Program; its instructions keep their ids.
  explicit ProgramDraft(const Program& program);

  /// Adds a lane and returns its index. The compute lanes 0..ranks-1 exist from the start.
  std::uint32_t add_lane(Lane lane);

  /// Adds an instruction at the end of its lane and returns its draft id: 0, 1, 2, ...
  InstructionId add(const Instruction& instruction);

  /// Adds an instruction directly after another one in its lane, before its current successor.
  /// Returns the draft id.
  InstructionId add_after(InstructionId previous, const Instruction& instruction);

  /// Makes the last added instruction wait for `draft_id`, which may be added later.
  void wait_for(InstructionId draft_id) { dependencies_.push_back(draft_id); }

  /// Makes any instruction wait for another, whenever they were added. A Deadlock names these
  /// dependencies first.
  void add_dependency(InstructionId waiter, InstructionId awaited) {
    added_.push_back({waiter, awaited});
  }

  const std::vector<Lane>& lanes() const { return lanes_; }

  /// The instruction with this draft id. The reference is valid until the next add().
  const Instruction& instruction(InstructionId draft_id) const { return instructions_[draft_id]; }

  InstructionId size() const { return static_cast<InstructionId>(instructions_.size()); }

  /// Sorts topologically. Linear in instructions and dependencies; consumes the draft.
  std::variant<Program, Deadlock> finish() &&;
  /// Sorts likewise, and returns the draft id of every instruction as well.
  std::variant<SortedDraft, Deadlock> sort() &&;

 private:
  void merge_dependencies();

  std::int32_t ranks_;
  std::vector<Lane> lanes_;
  std::vector<Instruction> instructions_;
  std::vector<std::uint32_t> dependency_begin_;
  std::vector<InstructionId> dependencies_;
  std::vector<std::pair<InstructionId, InstructionId>> added_;  ///< waiter, awaited
  std::map<InstructionId, InstructionId> behind_;  ///< instructions inserted after an instruction
};

}  // namespace bubblescope::inline sim

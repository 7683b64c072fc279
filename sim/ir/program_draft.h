// A ProgramDraft collects instructions and dependencies in any order; finish() sorts them into a
// Program, or says in which cycle they would wait for ever.
#pragma once

#include <map>
#include <utility>
#include <variant>
#include <vector>

#include "sim/ir/program.h"

namespace bubblescope {

class ProgramDraft {
 public:
  ProgramDraft(std::int32_t ranks, std::size_t expected_instructions);

  /// A draft that goes on from a Program; its instructions keep their ids.
  explicit ProgramDraft(const Program& program);

  /// Adds a lane and returns its index. The compute lanes 0..ranks-1 are there already.
  std::uint32_t add_lane(Lane lane);

  /// Adds an instruction at the end of its lane and returns its draft id: 0, 1, 2, ...
  InstructionId add(const Instruction& instruction);

  /// Adds an instruction directly behind another one, in its lane, before what stands behind that
  /// one now; returns its draft id.
  InstructionId add_behind(InstructionId previous, const Instruction& instruction);

  /// The last added instruction waits for this one, which may be added later.
  void wait_for(InstructionId draft_id) { dependencies_.push_back(draft_id); }

  /// Any instruction waits for another, whenever they were added. Of all that it waits for, these
  /// are the nearest: a Deadlock names them first.
  void add_dependency(InstructionId waiter, InstructionId awaited) {
    added_.push_back({waiter, awaited});
  }

  const std::vector<Lane>& lanes() const { return lanes_; }

  /// What was added under a draft id. The reference holds until the next add().
  const Instruction& instruction(InstructionId draft_id) const { return instructions_[draft_id]; }

  InstructionId size() const { return static_cast<InstructionId>(instructions_.size()); }

  /// Sorts by who waits for whom. Linear in instructions and dependencies; uses up the draft.
  std::variant<Program, Deadlock> finish() &&;

 private:
  void merge_added();

  std::int32_t ranks_;
  std::vector<Lane> lanes_;
  std::vector<Instruction> instructions_;
  std::vector<std::uint32_t> dependency_begin_;
  std::vector<InstructionId> dependencies_;
  std::vector<std::pair<InstructionId, InstructionId>> added_;  ///< waiter, awaited
  std::map<InstructionId, InstructionId> behind_;               ///< what was put behind what
};

}  // namespace bubblescope

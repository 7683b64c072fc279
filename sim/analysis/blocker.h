// The blocker of an instruction is the one that kept it from starting earlier: of everything that
// it waited for, the one that ended last.
//
// In a simulated step that is the previous instruction in its lane, or a dependency. A measured
// instruction may start later than all of these ended, for a reason that no dependency states:
//   - A message waits until its sender and its receiver are ready. Its blocker is the op of these
//     ranks that ended nearest to its start: here 1B0, not 0F3.
//   - In imported steps, a blocking send keeps its rank from continuing. If the message of an op
//     arrives before the rank's next op starts, the message blocks that op: 0SEND_F3 blocks 0B0.
//
//   rank 0   |== 0F3 ==|                      |== 0B0 ==|
//   message                      |- 0SEND_F3 -|
//   rank 1   |====== 1B0 =======|              |== 1F3 ==|
#pragma once

#include <optional>
#include <tuple>
#include <vector>

#include "sim/ir/program.h"
#include "sim/ir/timeline.h"

namespace bubblescope::inline sim {

/// Finds the blocker of any instruction. It refers to the Program and the Timeline, which must
/// outlive it.
class Blockers {
 public:
  Blockers(const Program& program, const Timeline& timeline);

  /// The instruction that `id` waited for and that released it last; empty if it waited for
  /// nothing. The previous instruction in its lane wins ties. An instruction that started after
  /// `id` cannot have blocked it, even if the Program says that `id` depends on it.
  std::optional<InstructionId> blocker(InstructionId id) const;

  /// The dependency of `id` that ended last; empty if it has none.
  std::optional<InstructionId> find_last_dependency(InstructionId id) const;

  /// When `id` could start if it waited for `earlier` alone: at the end of that, or after the gap
  /// that its lane rests after it.
  Nanos released_at(InstructionId id, InstructionId earlier) const {
    const bool is_previous = earlier == previous_in_lane_[id];
    return timeline_.end[earlier] + (is_previous ? timeline_.gap_before(id) : 0);
  }

  /// The instruction before `id` in its lane; kNoInstruction if there is none.
  InstructionId previous_in_lane(InstructionId id) const { return previous_in_lane_[id]; }

  /// Calls visit(earlier) for everything that `id` waited for, starting with the previous
  /// instruction in its lane.
  template <class Visit>
  void for_each_awaited(InstructionId id, Visit visit) const {
    const auto visit_if_earlier = [&](InstructionId other) {
      if (other != kNoInstruction && begins_before(other, id)) visit(other);
    };
    visit_if_earlier(previous_in_lane_[id]);
    for (const InstructionId dependency : program_.dependencies_of(id))
      visit_if_earlier(dependency);
    if (!unstated_.empty()) visit_if_earlier(unstated_[id]);
  }

  /// A strict order in which each instruction comes after everything that it waited for.
  bool begins_before(InstructionId left, InstructionId right) const {
    return std::tie(timeline_.start[left], left) < std::tie(timeline_.start[right], right);
  }

  /// Whether any instruction has a blocker that no dependency states. The order of ids is then not
  /// topological.
  bool has_unstated() const { return !unstated_.empty(); }

 private:
  void note_sender(InstructionId message);
  void find_unstated();
  InstructionId find_unstated_blocker(InstructionId id) const;
  InstructionId find_late_end(InstructionId message, Nanos free_from) const;
  InstructionId find_blocking_send(InstructionId op, Nanos free_from) const;

  const Program& program_;
  const Timeline& timeline_;
  std::vector<InstructionId> previous_in_lane_;
  std::vector<std::vector<InstructionId>> computes_;  ///< [rank], in the order of its lane
  std::vector<InstructionId> sent_;                   ///< [op]: the last of its messages to arrive
  /// The blocker of each instruction that no dependency states; empty if no instruction has one, as
  /// in every simulated step.
  std::vector<InstructionId> unstated_;
};

}  // namespace bubblescope::inline sim

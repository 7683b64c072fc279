// Why an instruction did not start earlier: its holder, the last to end of all that it waited for.
//
// By the rule of the machine that is what stands before it in its lane, or a dependency. A measured
// instruction may start later than all of these have ended, for a reason that no dependency says:
//   - A message waits until its sender and its receiver are there. Its holder is the op of these
//     ranks that ended nearest to its start: here 1B0, not 0F3.
//   - A blocking send keeps its rank from going on. Where the message of an op arrives before the
//     rank's next op, it is that one's holder: here 0SEND_F3 holds up 0B0.
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

/// Finds the blocker of any instruction. Refers to the Program and the Timeline.
class Blockers {
 public:
  Blockers(const Program& program, const Timeline& timeline);

  /// Whatever ended last of all that `id` waited for, its own lane first; nothing where it waited
  /// for nothing. What began after `id` did not hold it up, whatever the Program says.
  std::optional<InstructionId> blocker(InstructionId id) const;

  /// The dependency of `id` that ended last; empty if it has none.
  std::optional<InstructionId> find_last_dependency(InstructionId id) const;

  /// Calls visit(earlier) for everything that `id` waited for, its own lane first.
  template <class Visit>
  void for_each_awaited(InstructionId id, Visit visit) const {
    const auto visit_if_earlier = [&](InstructionId other) {
      if (other != kNoInstruction && begins_before(other, id)) visit(other);
    };
    visit_if_earlier(previous_in_lane_[id]);
    for (const InstructionId dependency : program_.dependencies_of(id))
      visit_if_earlier(dependency);
    if (!unsaid_.empty()) visit_if_earlier(unsaid_[id]);
  }

  /// Orders instructions so that each comes behind all that it waited for.
  bool begins_before(InstructionId left, InstructionId right) const {
    return std::tie(timeline_.start[left], left) < std::tie(timeline_.start[right], right);
  }

  /// Whether something waited for what no dependency says, so that ids are no such order.
  bool has_unsaid() const { return !unsaid_.empty(); }

 private:
  void note_sender(InstructionId message);
  void find_unsaid();
  InstructionId unsaid_holder(InstructionId id) const;
  InstructionId late_end(InstructionId message, Nanos free_from) const;
  InstructionId blocking_send(InstructionId op, Nanos free_from) const;

  const Program& program_;
  const Timeline& timeline_;
  std::vector<InstructionId> previous_in_lane_;
  std::vector<std::vector<InstructionId>> computes_;  ///< [rank], in the order of its lane
  std::vector<InstructionId> sent_;  ///< per op, which of its messages arrived last
  /// Per instruction, what held it up that no dependency says; empty where there is nothing such,
  /// as in every simulated step.
  std::vector<InstructionId> unsaid_;
};

}  // namespace bubblescope::inline sim

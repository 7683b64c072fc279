// The wait rules of the modes in which messages block the rank itself: the same edges as
// lower_to_host(), in the same order, computed for one event at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "sim/ir/p2p_mode.h"
#include "sim/ir/posted_event.h"

namespace bubblescope::inline sim {

class HostRules {
 public:
  HostRules(const Program& dataflow, const std::vector<PostedSteps>& steps, P2pMode mode);

  bool is_done(PostedEvent event) const { return done_(event); }
  /// The post or wait that a rank's list has reached; empty at its end.
  std::optional<PostedEvent> front(std::int32_t rank) const;
  void pass(std::int32_t rank);

  PostedEvent event_to_report(PostedEvent, PostedEvent awaited) const { return awaited; }

  /// Lists what an event waits for besides its dependencies in the dataflow Program. `step` is the
  /// position of a compute op in its rank's list.
  template <class Visit>
  void for_each_awaited(PostedEvent event, std::size_t step, const Visit& visit) const;

 private:
  using Part = PostedEvent::Part;

  /// Adjacent steps of a list whose posts all come before their waits.
  struct Group {
    std::size_t begin = 0;
    std::size_t end = 0;
    std::size_t at = 0;
    bool is_waiting = false;  ///< `at` is at the wait, not at the post
  };

  bool has_wait(const PostedStep& step) const {
    return is_send(step.op.kind) || mode_ != P2pMode::kHostSend;
  }
  void advance_to_group(std::size_t rank, std::size_t from);
  void advance_to_wait(std::size_t rank);
  /// The step before `step`, skipping waits for sends that follow a send that has blocked the rank
  /// already.
  const PostedStep* find_step_before(std::int32_t rank, std::size_t step) const;

  const Program& dataflow_;
  const std::vector<PostedSteps>& steps_;
  P2pMode mode_;
  DoneEvents done_;
  std::vector<Group> groups_;  ///< [rank]: the group that its list has reached
};

template <class Visit>
void HostRules::for_each_awaited(PostedEvent event, std::size_t step, const Visit& visit) const {
  const Instruction& instruction = dataflow_.instructions[event.id];
  if (event.part == Part::kOwn) {
    if (is_compute(instruction.op.kind)) {
      const PostedStep* const before = find_step_before(instruction.rank, step);
      if (before != nullptr && is_message(before->op.kind))
        visit(has_wait(*before) ? wait_of(*before) : post_of(*before));
    } else if (is_message(instruction)) {
      const bool up = instruction.rank < instruction.peer;
      visit(PostedEvent{event.id, up ? Part::kSendPost : Part::kReceivePost});
      visit(PostedEvent{event.id, up ? Part::kReceivePost : Part::kSendPost});
    }
    for (const InstructionId needed : dataflow_.dependencies_of(event.id))
      visit(PostedEvent{needed, Part::kOwn});
  } else if (event.is_post()) {
    const std::int32_t rank = event.is_at_sender() ? instruction.rank : instruction.peer;
    const PostedStep* const before =
        find_step_before(rank, groups_[static_cast<std::size_t>(rank)].at);
    if (before != nullptr && is_compute(before->op.kind))
      visit(PostedEvent{before->id, Part::kOwn});
  } else {
    const bool ends_at_post = mode_ == P2pMode::kHostSend;
    visit(PostedEvent{event.id, ends_at_post ? Part::kReceivePost : Part::kOwn});
  }
}

}  // namespace bubblescope::inline sim

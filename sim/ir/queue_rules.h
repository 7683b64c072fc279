// The wait rules of the modes with separate communication queues: the same edges as
// lower_to_queues(), in the same order, computed for one event at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "sim/ir/lower_messages.h"
#include "sim/ir/posted_event.h"

namespace bubblescope::inline sim {

class QueueRules {
 public:
  QueueRules(const Program& dataflow, const std::vector<PostedSteps>& steps, Slots slots);

  bool is_done(PostedEvent event) const { return done_(event); }
  /// The post or wait that a rank's queue has reached; empty at its end.
  std::optional<PostedEvent> front(std::int32_t rank) const;
  void pass(std::int32_t rank);

  /// The event to name if a send waits for a slot: its own receive or the receive that frees a
  /// slot, whichever comes first in the receiver's list.
  PostedEvent event_to_report(PostedEvent waiter, PostedEvent awaited) const;

  /// Lists what an event waits for besides its dependencies in the dataflow Program, which apply to
  /// the posts of sends too. `step` is the position of a compute op in its rank's list.
  template <class Visit>
  void for_each_awaited(PostedEvent event, std::size_t step, const Visit& visit) const;

 private:
  using Part = PostedEvent::Part;

  /// Completed sends and receives of a channel.
  struct Counts {
    std::uint32_t sent = 0;
    std::uint32_t received = 0;
  };

  std::uint64_t channel_of(InstructionId message) const {
    const Instruction& instruction = dataflow_.instructions[message];
    return std::uint64_t{static_cast<std::uint32_t>(instruction.rank)} << 32 |
           static_cast<std::uint32_t>(instruction.peer);
  }
  bool has_slot_limit() const { return slots_ && *slots_ > 0; }
  void advance_to_message(std::size_t rank);
  bool has_slot(InstructionId message) const;
  template <class Visit>
  void for_each_send_wait(std::int32_t rank, std::size_t step, const Visit& visit) const;

  const Program& dataflow_;
  const std::vector<PostedSteps>& steps_;
  Slots slots_;
  DoneEvents done_;
  std::vector<std::size_t> at_;  ///< [rank]: the step that its queue has reached
  /// [rank]: whether it is at the wait of a receive, after its post.
  std::vector<bool> is_waiting_;
  std::vector<bool> waits_for_sends_;  ///< [rank]: whether its list has WAIT_SENDs
  std::unordered_map<std::uint64_t, Counts> channels_;
};

/// A WAIT_SEND blocks the rank until its send is done, in both lanes. A compute op waits for the
/// sends since the previous compute op, a post for those since the previous post.
template <class Visit>
void QueueRules::for_each_send_wait(std::int32_t rank, std::size_t step, const Visit& visit) const {
  if (!waits_for_sends_[static_cast<std::size_t>(rank)]) return;
  const PostedSteps& list = steps_[static_cast<std::size_t>(rank)];
  const bool computes = is_compute(list[step].op.kind);
  std::size_t begin = step;
  while (begin > 0 &&
         (computes ? !is_compute(list[begin - 1].op.kind) : !is_message(list[begin - 1].op.kind)))
    --begin;
  for (std::size_t at = begin; at < step; ++at)
    if (is_send_wait(list[at].op.kind))
      visit(PostedEvent{list[at].id, slots_ == 0 ? Part::kOwn : Part::kSendPost});
}

template <class Visit>
void QueueRules::for_each_awaited(PostedEvent event, std::size_t step, const Visit& visit) const {
  const Instruction& instruction = dataflow_.instructions[event.id];
  if (event.part == Part::kReceiveWait) return visit(PostedEvent{event.id, Part::kOwn});
  if (event.part == Part::kOwn) {
    if (is_compute(instruction.op.kind)) for_each_send_wait(instruction.rank, step, visit);
    if (is_message(instruction)) visit(PostedEvent{event.id, Part::kSendPost});
    for (const InstructionId needed : dataflow_.dependencies_of(event.id))
      if (is_message(dataflow_.instructions[needed]))
        visit(PostedEvent{needed, Part::kReceiveWait});
  } else {
    const bool sends = event.part == Part::kSendPost;
    if (sends && slots_ && !has_slot(event.id)) visit(PostedEvent{event.id, Part::kReceivePost});
    const std::int32_t rank = sends ? instruction.rank : instruction.peer;
    for_each_send_wait(rank, at_[static_cast<std::size_t>(rank)], visit);
    if (!sends) return;
  }
  for (const InstructionId needed : dataflow_.dependencies_of(event.id))
    visit(PostedEvent{needed, Part::kOwn});
}

}  // namespace bubblescope::inline sim

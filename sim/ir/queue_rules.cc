// Slots are counted: a send compares its number with the completed receives of its channel.
#include "sim/ir/queue_rules.h"

#include <algorithm>

namespace bubblescope::inline sim {

QueueRules::QueueRules(const Program& dataflow, const std::vector<PostedSteps>& steps, Slots slots)
    : dataflow_(dataflow),
      steps_(steps),
      slots_(slots),
      done_(dataflow.size()),
      at_(steps.size(), 0),
      is_waiting_(steps.size(), false) {
  for (std::size_t rank = 0; rank < steps.size(); ++rank) {
    waits_for_sends_.push_back(
        std::any_of(steps[rank].begin(), steps[rank].end(),
                    [](const PostedStep& step) { return is_send_wait(step.op.kind); }));
    advance_to_message(rank);
  }
}

void QueueRules::advance_to_message(std::size_t rank) {
  const PostedSteps& list = steps_[rank];
  std::size_t& at = at_[rank];
  while (at < list.size() && !is_message(list[at].op.kind)) ++at;
}

std::optional<PostedEvent> QueueRules::front(std::int32_t rank) const {
  const auto own = static_cast<std::size_t>(rank);
  if (at_[own] == steps_[own].size()) return {};
  const PostedStep& step = steps_[own][at_[own]];
  return is_waiting_[own] ? wait_of(step) : post_of(step);
}

void QueueRules::pass(std::int32_t rank) {
  const auto own = static_cast<std::size_t>(rank);
  const PostedEvent event = *front(rank);
  done_.note(event);
  if (event.part == Part::kReceivePost) {
    is_waiting_[own] = true;
    return;
  }
  is_waiting_[own] = false;
  if (has_slot_limit()) {
    Counts& counts = channels_[channel_of(event.id)];
    ++(event.part == Part::kSendPost ? counts.sent : counts.received);
  }
  ++at_[own];
  advance_to_message(own);
}

/// Send n finds a slot when n - slots + 1 messages have been received; otherwise it proceeds when
/// its own receive is posted.
bool QueueRules::has_slot(InstructionId message) const {
  if (done_({message, Part::kReceivePost})) return true;
  if (!has_slot_limit()) return false;
  const auto found = channels_.find(channel_of(message));
  const Counts counts = found == channels_.end() ? Counts{} : found->second;
  return counts.sent < counts.received + static_cast<std::uint32_t>(*slots_);
}

PostedEvent QueueRules::event_to_report(PostedEvent waiter, PostedEvent awaited) const {
  const InstructionId message = waiter.id;
  const PostedEvent own{message, Part::kReceivePost};
  if (!has_slot_limit() || waiter.part != Part::kSendPost || awaited != own) return awaited;
  const auto found = channels_.find(channel_of(message));
  const std::uint32_t sent = found == channels_.end() ? 0 : found->second.sent;
  std::uint32_t to_pass = sent - static_cast<std::uint32_t>(*slots_);
  const auto receiver = static_cast<std::size_t>(dataflow_.instructions[message].peer);
  for (const PostedStep& step : steps_[receiver]) {
    if (!is_recv(step.op.kind) || channel_of(step.id) != channel_of(message)) continue;
    if (step.id == message) return own;
    if (to_pass-- == 0) return wait_of(step);
  }
  return own;
}

}  // namespace bubblescope::inline sim

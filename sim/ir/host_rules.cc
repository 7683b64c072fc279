// Advances through every list, group by group.
#include "sim/ir/host_rules.h"

namespace bubblescope::inline sim {

HostRules::HostRules(const Program& dataflow, const std::vector<PostedSteps>& steps, P2pMode mode)
    : dataflow_(dataflow),
      steps_(steps),
      mode_(mode),
      done_(dataflow.size()),
      groups_(steps.size()) {
  for (std::size_t rank = 0; rank < steps.size(); ++rank) advance_to_group(rank, 0);
}

void HostRules::advance_to_group(std::size_t rank, std::size_t from) {
  const PostedSteps& list = steps_[rank];
  while (from < list.size() && !is_message(list[from].op.kind)) ++from;
  std::size_t end = from;
  while (end < list.size() && is_message(list[end].op.kind) &&
         (end == from || mode_ == P2pMode::kBatched))
    ++end;
  groups_[rank] = {from, end, from, false};
}

void HostRules::advance_to_wait(std::size_t rank) {
  Group& group = groups_[rank];
  while (group.at < group.end && !has_wait(steps_[rank][group.at])) ++group.at;
  if (group.at == group.end) advance_to_group(rank, group.end);
}

std::optional<PostedEvent> HostRules::front(std::int32_t rank) const {
  const auto own = static_cast<std::size_t>(rank);
  const Group& group = groups_[own];
  if (group.at == steps_[own].size()) return {};
  const PostedStep& step = steps_[own][group.at];
  return group.is_waiting ? wait_of(step) : post_of(step);
}

void HostRules::pass(std::int32_t rank) {
  const auto own = static_cast<std::size_t>(rank);
  done_.note(*front(rank));
  Group& group = groups_[own];
  ++group.at;
  if (!group.is_waiting && group.at < group.end) return;
  if (!group.is_waiting) group = {group.begin, group.end, group.begin, true};
  advance_to_wait(own);
}

const PostedStep* HostRules::find_step_before(std::int32_t rank, std::size_t step) const {
  const PostedSteps& list = steps_[static_cast<std::size_t>(rank)];
  while (step > 0 && is_send_wait(list[step - 1].op.kind)) --step;
  return step == 0 ? nullptr : &list[step - 1];
}

}  // namespace bubblescope::inline sim

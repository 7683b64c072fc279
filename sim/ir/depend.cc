// Finds the two ends of messages.
#include "sim/ir/depend.h"

#include <algorithm>

namespace bubblescope::inline sim {

bool carries_activation(OpKind message) {
  return message == OpKind::kSendForward || message == OpKind::kRecvForward ||
         message == OpKind::kWaitSendForward;
}

std::optional<OpKind> find_receive(OpKind op) {
  if (op == OpKind::kForward) return OpKind::kRecvForward;
  if (gives_input_grad(op)) return OpKind::kRecvBackward;
  return {};
}

Op make_send(const Value& value) {
  const bool forward = value.value_kind == ValueKind::kActivation;
  return {value.stage, value.microbatch, value.slice,
          forward ? OpKind::kSendForward : OpKind::kSendBackward, Pairing::kAlone};
}

Op make_receive(const Schedule& schedule, const Value& value, std::int32_t receiving_stage) {
  const bool forward = value.value_kind == ValueKind::kActivation;
  const std::int32_t stage = schedule.graph.is_chain() ? receiving_stage : value.stage;
  return {stage, value.microbatch, value.slice,
          forward ? OpKind::kRecvForward : OpKind::kRecvBackward, Pairing::kAlone};
}

bool are_fused(const Schedule& schedule, const Value& value, const Op& op) {
  if (schedule.fused_forwards == 1 || op.kind != OpKind::kForward || value.stage != op.stage)
    return false;
  const Op producer{value.stage, value.microbatch, value.slice};
  return schedule.forward_index(producer) / schedule.fused_forwards ==
         schedule.forward_index(op) / schedule.fused_forwards;
}

namespace {

/// Calls visit(stage) for each other stage that needs a value.
template <class Visit>
void for_each_receiver(const Schedule& schedule, const Value& value, const Visit& visit) {
  if (value.value_kind == ValueKind::kActivation) for_each_reader(schedule, value.stage, visit);
  if (value.value_kind == ValueKind::kGradient) for_each_input(schedule, value.stage, visit);
}

}  // namespace

std::optional<std::int32_t> receiving_stage(const Schedule& schedule, const Value& value) {
  std::optional<std::int32_t> first;
  for_each_receiver(schedule, value, [&](std::int32_t stage) { first = first.value_or(stage); });
  return first;
}

std::vector<std::int32_t> receiving_ranks(const Schedule& schedule, const Value& value) {
  const std::int32_t own = schedule.rank_of(value.stage, value.microbatch);
  std::vector<std::int32_t> ranks;
  for_each_receiver(schedule, value, [&](std::int32_t stage) {
    const std::int32_t rank = schedule.rank_of(stage, value.microbatch);
    if (rank != own && std::find(ranks.begin(), ranks.end(), rank) == ranks.end())
      ranks.push_back(rank);
  });
  return ranks;
}

std::optional<Value> find_carried_value(const Schedule& schedule, const Op& message) {
  const bool forward = carries_activation(message.kind);
  const std::int32_t step = schedule.graph.is_chain() ? (forward ? 1 : -1) : 0;
  const std::int32_t from = is_recv(message.kind) ? message.stage - step : message.stage;
  if (from < 0 || from >= schedule.stages()) return std::nullopt;
  if (message.microbatch < 0 || message.microbatch >= schedule.shape.microbatches ||
      message.slice < 0 || message.slice >= schedule.shape.slices)
    return std::nullopt;
  const Value value{forward ? ValueKind::kActivation : ValueKind::kGradient, from,
                    message.microbatch, message.slice};
  if (!receiving_stage(schedule, value)) return std::nullopt;
  return value;
}

}  // namespace bubblescope::inline sim

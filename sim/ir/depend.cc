// The two ends of messages.
#include "sim/ir/depend.h"

namespace bubblescope::inline sim {

Op make_send(const Value& value) {
  const bool forward = value.value_kind == ValueKind::kActivation;
  return {value.stage, value.microbatch, value.slice,
          forward ? OpKind::kSendForward : OpKind::kSendBackward, Pairing::kAlone};
}

Op make_receive(const Value& value, std::int32_t receiving_stage) {
  const bool forward = value.value_kind == ValueKind::kActivation;
  return {receiving_stage, value.microbatch, value.slice,
          forward ? OpKind::kRecvForward : OpKind::kRecvBackward, Pairing::kAlone};
}

bool are_fused(const Schedule& schedule, const Value& value, const Op& op) {
  if (schedule.fused_forwards == 1 || op.kind != OpKind::kForward || value.stage != op.stage)
    return false;
  const Op producer{value.stage, value.microbatch, value.slice};
  return schedule.forward_index(producer) / schedule.fused_forwards ==
         schedule.forward_index(op) / schedule.fused_forwards;
}

std::optional<std::int32_t> receiving_stage(const Schedule& schedule, const Value& value) {
  if (value.value_kind == ValueKind::kActivation && !ends_pipeline(schedule, value.stage))
    return value.stage + 1;
  if (value.value_kind == ValueKind::kGradient && !begins_pipeline(schedule, value.stage))
    return value.stage - 1;
  return std::nullopt;
}

std::optional<Value> find_carried_value(const Schedule& schedule, const Op& message) {
  const bool forward = message.kind == OpKind::kSendForward ||
                       message.kind == OpKind::kRecvForward ||
                       message.kind == OpKind::kWaitSendForward;
  const std::int32_t step = forward ? 1 : -1;
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

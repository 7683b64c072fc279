// The two ends of messages.
#include "sim/ir/depend.h"

namespace bubblescope {

Op send_of(const Made& made) {
  const bool forward = made.product == Product::kActivation;
  return {made.stage, made.microbatch, made.slice,
          forward ? OpKind::kSendForward : OpKind::kSendBackward, Pairing::kAlone};
}

Op receive_of(const Made& made, std::int32_t receiving_stage) {
  const bool forward = made.product == Product::kActivation;
  return {receiving_stage, made.microbatch, made.slice,
          forward ? OpKind::kRecvForward : OpKind::kRecvBackward, Pairing::kAlone};
}

bool are_joint(const Schedule& schedule, const Made& made, const Op& op) {
  if (schedule.joint_forwards == 1 || op.kind != OpKind::kForward || made.stage != op.stage)
    return false;
  const Op maker{made.stage, made.microbatch, made.slice};
  return schedule.forward_index(maker) / schedule.joint_forwards ==
         schedule.forward_index(op) / schedule.joint_forwards;
}

std::optional<std::int32_t> receiving_stage(const Schedule& schedule, const Made& made) {
  if (made.product == Product::kActivation && !ends_pipeline(schedule, made.stage))
    return made.stage + 1;
  if (made.product == Product::kGradient && !begins_pipeline(schedule, made.stage))
    return made.stage - 1;
  return std::nullopt;
}

std::optional<Made> carried_by(const Schedule& schedule, const Op& message) {
  const bool forward = message.kind == OpKind::kSendForward ||
                       message.kind == OpKind::kRecvForward ||
                       message.kind == OpKind::kWaitSendForward;
  const std::int32_t step = forward ? 1 : -1;
  const std::int32_t from = is_recv(message.kind) ? message.stage - step : message.stage;
  if (from < 0 || from >= schedule.stages()) return std::nullopt;
  if (message.microbatch < 0 || message.microbatch >= schedule.shape.microbatches ||
      message.slice < 0 || message.slice >= schedule.shape.slices)
    return std::nullopt;
  const Made made{forward ? Product::kActivation : Product::kGradient, from, message.microbatch,
                  message.slice};
  if (!receiving_stage(schedule, made)) return std::nullopt;
  return made;
}

}  // namespace bubblescope

// Writes the text form of ops.
#include "sim/ir/op.h"

namespace bubblescope::inline sim {

std::string_view code(OpKind kind) {
  switch (kind) {
    case OpKind::kForward: return "F";
    case OpKind::kBackward: return "B";
    case OpKind::kInputGrad: return "I";
    case OpKind::kWeightGrad: return "W";
    case OpKind::kRecompute: return "R";
    case OpKind::kSendForward: return "SEND_F";
    case OpKind::kRecvForward: return "RECV_F";
    case OpKind::kSendBackward: return "SEND_B";
    case OpKind::kRecvBackward: return "RECV_B";
    case OpKind::kWaitSendForward: return "WAIT_SEND_F";
    case OpKind::kWaitSendBackward: return "WAIT_SEND_B";
    case OpKind::kEvict: return "EVICT";
    case OpKind::kLoad: return "LOAD";
    case OpKind::kUnshard: return "UNSHARD";
    case OpKind::kReshard: return "RESHARD";
    case OpKind::kReduceGrad: return "REDUCE_GRAD";
    case OpKind::kNorm: return "NORM";
    case OpKind::kOptimizer: return "OPT";
    case OpKind::kWaitReduceGrad: return "WAIT_REDUCE_GRAD";
    case OpKind::kIdle: return "";
  }
  return "?";
}

std::string to_string(const Op& op) {
  if (op.kind == OpKind::kIdle) return "";
  std::string text = std::to_string(op.stage);
  text += code(op.kind);
  if (!has_microbatch(op.kind)) return text;
  text += std::to_string(op.microbatch);
  if (op.slice > 0) text += "." + std::to_string(op.slice);
  return text;
}

}  // namespace bubblescope::inline sim

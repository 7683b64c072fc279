// One operation of a pipeline schedule, in PyTorch's grammar: `2F0` is the forward of micro-batch 0
// through stage 2.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace bubblescope::inline sim {

/// The kind of an op, in groups: compute ops, messages, waits for sends, copies of activations, ops
/// of a whole stage or rank, and the empty cell in the grids of frameworks.
enum class OpKind : std::uint8_t {
  kForward,           ///< F
  kBackward,          ///< B: the full backward, input and weight gradient in one
  kInputGrad,         ///< I: the gradient that the previous stage waits for
  kWeightGrad,        ///< W: the gradient that only this stage's optimizer needs
  kRecompute,         ///< R: runs the forward again, from the saved input
  kSendForward,       ///< SEND_F: an activation leaves for the next stage
  kRecvForward,       ///< RECV_F: an activation arrives from the previous stage
  kSendBackward,      ///< SEND_B: a gradient leaves for the previous stage
  kRecvBackward,      ///< RECV_B: a gradient arrives from the next stage
  kWaitSendForward,   ///< WAIT_SEND_F: blocks the rank until its SEND_F is done
  kWaitSendBackward,  ///< WAIT_SEND_B: blocks the rank until its SEND_B is done
  kEvict,             ///< EVICT: copies saved activations to another memory
  kLoad,              ///< LOAD: copies them back
  kUnshard,           ///< UNSHARD: gather the stage's parameters (no micro-batch)
  kReshard,           ///< RESHARD: drop the gathered parameters (no micro-batch)
  kReduceGrad,        ///< REDUCE_GRAD: sum the stage's gradients over its replicas (no micro-batch)
  kNorm,              ///< NORM: sums the gradient norm over ranks; this is one stage's part
  kOptimizer,         ///< OPT: updates the stage's weights (no micro-batch)
  kWaitReduceGrad,    ///< WAIT_REDUCE_GRAD: blocks the rank until its REDUCE_GRAD is done
  kIdle,              ///< an empty cell of a grid; in a Program, the wait for a micro-batch
};
inline constexpr int kOpKinds = 20;
inline constexpr int kComputeKinds = 5;

/// Whether an op runs alone or as half of an overlapped forward-backward pair.
enum class Pairing : std::uint8_t { kAlone, kFirst, kSecond };

/// One op. It is small because schedules hold millions of them.
struct Op {
  std::int32_t stage = 0;
  std::int32_t microbatch = 0;
  std::int16_t slice = 0;  ///< the slice of the sequence; 0 if sequences are whole
  OpKind kind = OpKind::kForward;
  Pairing pairing = Pairing::kAlone;

  bool operator==(const Op&) const = default;
};

/// One `after` edge: `op` starts when `awaited` has ended, whatever ranks the two are on. Pairings
/// do not count here: both are kAlone.
struct AfterEdge {
  Op op;
  Op awaited;

  bool operator==(const AfterEdge&) const = default;
};

inline Op forward(std::int32_t stage, std::int32_t microbatch) { return {stage, microbatch}; }
inline Op backward(std::int32_t stage, std::int32_t microbatch) {
  return {stage, microbatch, 0, OpKind::kBackward};
}
inline Op input_grad(std::int32_t stage, std::int32_t microbatch) {
  return {stage, microbatch, 0, OpKind::kInputGrad};
}
inline Op weight_grad(std::int32_t stage, std::int32_t microbatch) {
  return {stage, microbatch, 0, OpKind::kWeightGrad};
}

inline bool is_compute(OpKind kind) { return kind <= OpKind::kRecompute; }
inline bool is_send(OpKind kind) {
  return kind == OpKind::kSendForward || kind == OpKind::kSendBackward;
}
inline bool is_recv(OpKind kind) {
  return kind == OpKind::kRecvForward || kind == OpKind::kRecvBackward;
}
inline bool is_message(OpKind kind) { return is_send(kind) || is_recv(kind); }
/// True for the ops that block the rank until one of its SENDs is done.
inline bool is_send_wait(OpKind kind) {
  return kind == OpKind::kWaitSendForward || kind == OpKind::kWaitSendBackward;
}
/// Returns the wait for a SEND.
inline Op make_send_wait(Op send) {
  send.kind =
      send.kind == OpKind::kSendForward ? OpKind::kWaitSendForward : OpKind::kWaitSendBackward;
  return send;
}
/// True for ops that a rank runs together with others, beside its compute ops.
inline bool is_collective(OpKind kind) { return kind >= OpKind::kUnshard && kind <= OpKind::kNorm; }
/// True for copies of activations from and to a rank's memory.
inline bool is_copy(OpKind kind) { return kind == OpKind::kEvict || kind == OpKind::kLoad; }
/// Whether ops of this kind occur in a rank's order, and not only in the lists that frameworks
/// write.
inline bool occurs_in_order(OpKind kind) { return is_compute(kind) || is_copy(kind); }
inline bool has_microbatch(OpKind kind) { return kind <= OpKind::kLoad; }
/// True for B and I: the ops whose end lets the previous stage continue backward.
inline bool gives_input_grad(OpKind kind) {
  return kind == OpKind::kBackward || kind == OpKind::kInputGrad;
}

/// Returns true for B and W, the ops that add to their stage's weight gradients.
inline bool makes_weight_grad(OpKind kind) {
  return kind == OpKind::kBackward || kind == OpKind::kWeightGrad;
}

/// Returns the letters of the text form, such as "F", "I" or "SEND_F".
std::string_view code(OpKind kind);

/// `2F0`, `0SEND_F1`, `3UNSHARD`; with slices `2F0.1`; an idle cell is empty. Pairing is not shown:
/// it belongs to two ops.
std::string to_string(const Op& op);

}  // namespace bubblescope::inline sim

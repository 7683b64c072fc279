// Parses the names of slices and ranges in traces of other programs.
//
//   PP:2F0  2F0  0SEND_F1      PyTorch's pipelining (record_function), and anyone's NVTX ranges
//   Forward 3  Backward 3      PyTorch's schedules of one stage per rank: the rank is the stage
//   forward-compute ...        StragglerAnalysis and Megatron: args and thread name give the rest
//   PP:(0F8;7B0)OVERLAP_F_B    one annotation for two ops, a forward and then a backward
//   F3.1.0  W3.1.0             the zero-bubble fork of Megatron-LM: micro-batch, chunk, slice
//   forward_step, DeepSpeedEngine.backward      neither stage nor micro-batch: the order gives them
//   PipelineEngine._exec_send_grads, ForwardPass(buffer_id=1)      DeepSpeed's pipeline, likewise
// Text after a comma is ignored: emit_nvtx appends ", op_id = 11" and ", seq = 4" to each name.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "sim/ir/op.h"

namespace bubblescope::traces {

/// An op as a name states it; what the name leaves open must follow from the context.
struct NamedOp {
  Op op;
  bool has_microbatch = true;
  bool has_stage = true;
  /// A backward that is only its input gradient if the trace names weight gradients, too.
  bool may_be_input_grad = false;
  bool may_have_chunk = false;  ///< without chunk, though the framework may run several per rank
  std::optional<std::int32_t> chunk = {};  ///< without stage: which of the rank's stages; else 0
  std::optional<std::int32_t> rank = {};
  std::optional<std::int64_t> step = {};
};

/// Returns the op that a name states; nullopt where it states none.
std::optional<NamedOp> parse_op_name(std::string_view name);

/// Returns the forward and the backward that a name states; nullopt where it states no pair.
std::optional<std::array<Op, 2>> parse_pair_name(std::string_view name);

/// Returns the number of the step that a range marks: "iteration 12", "step_3", "ProfilerStep#5";
/// nullopt for any other name.
std::optional<std::int64_t> parse_step_mark(std::string_view name);

/// The kind of an op in a trace that names weight gradients, or does not.
inline OpKind kind_in_trace(const NamedOp& named, bool has_weight_grads) {
  return named.may_be_input_grad && has_weight_grads ? OpKind::kInputGrad : named.op.kind;
}

}  // namespace bubblescope::traces

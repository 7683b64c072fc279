// What the names of slices and ranges say in the traces of others.
//
//   PP:2F0  2F0  0SEND_F1      PyTorch's pipelining (record_function), and anyone's NVTX ranges
//   Forward 3  Backward 3      PyTorch's schedules of one stage per rank: the rank says the stage
//   forward-compute ...        StragglerAnalysis and Megatron: args and thread name say the rest
#pragma once

#include <optional>
#include <string_view>

#include "sim/ir/op.h"

namespace bubblescope {

/// What is left open by a name must be said by what stands around it.
struct NamedOp {
  Op op;
  bool has_microbatch = true;
  bool has_stage = true;
};

/// The op that a name stands for; nothing where it names none.
std::optional<NamedOp> parse_op_name(std::string_view name);

inline bool names_op(std::string_view name) { return parse_op_name(name).has_value(); }

}  // namespace bubblescope

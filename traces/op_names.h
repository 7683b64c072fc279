// What the names of slices and ranges say in the traces of others.
//
//   PP:2F0  2F0  0SEND_F1      PyTorch's pipelining (record_function), and anyone's NVTX ranges
//   Forward 3  Backward 3      PyTorch's schedules of one stage per rank: the rank says the stage
//   forward-compute ...        StragglerAnalysis and Megatron: args and thread name say the rest
//   PP:(0F8;7B0)OVERLAP_F_B    one annotation for two ops, a forward and then a backward
// What follows a comma is left out: emit_nvtx appends ", op_id = 11" and ", seq = 4" to each name.
#pragma once

#include <array>
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

/// The two ops that a name stands for, a forward and a backward; nothing where it names no pair.
std::optional<std::array<Op, 2>> parse_pair_name(std::string_view name);

inline bool names_op(std::string_view name) {
  return parse_op_name(name).has_value() || parse_pair_name(name).has_value();
}

}  // namespace bubblescope

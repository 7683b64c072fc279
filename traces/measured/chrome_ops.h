// Finds the ops that the slices of a Chrome trace state.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "traces/measured/chrome_slice.h"
#include "traces/measured/name_rules.h"
#include "traces/measured/op_names.h"

namespace bubblescope::traces {

/// Returns the op that a slice states by args.op or its name; or by a word for its kind and its
/// arguments, as Megatron's `forward` with args.microbatch; nullopt where it states none.
std::optional<NamedOp> find_op(const ChromeSlice& slice, NameMatcher& names);

/// The slices that are ops.
struct FoundOps {
  std::vector<std::optional<NamedOp>> ops;  ///< [slice]
  std::vector<std::size_t> not_ops = {};    ///< slices that are named like ops
};

/// The ops of all slices. If a word names a slice within another op of its kind and micro-batch, or
/// within a whole backward, it is no op of its own. If words such as "dw" name much fewer weight
/// gradients than there are backwards, these compute the gradients of weights as well, or not all
/// of it is recorded: then what the words name is no op.
FoundOps find_ops(const std::vector<ChromeSlice>& slices, NameMatcher& names);

}  // namespace bubblescope::traces

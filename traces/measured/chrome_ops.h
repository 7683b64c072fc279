// Finds the ops that the slices of a Chrome trace state.
#pragma once

#include <optional>

#include "traces/measured/chrome_events.h"
#include "traces/measured/name_rules.h"
#include "traces/measured/op_names.h"

namespace bubblescope::traces {

/// The op that a slice states by args.op or its name; or by a word for its kind and its arguments,
/// as Megatron's `forward` with args.microbatch; nullopt where it states none.
std::optional<NamedOp> find_op(const ChromeSlice& slice, NameMatcher& names);

}  // namespace bubblescope::traces

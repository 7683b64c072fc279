// Recognizes the parts of overlapped ops, which DeepSeek's published profile of DualPipe annotates:
// attn(F), dispatch(B), combine(F), mlp(W).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "traces/measured/chrome_events.h"
#include "traces/measured/profile_activity.h"

namespace bubblescope::traces {

/// Whether a name is a word with the kind of an op in brackets.
bool is_part_name(std::string_view name);

/// Describes what such a profile has, and why it is not a step of a pipeline; empty without parts:
///   "; it has parts of overlapped ops: attn(F) 4 times (4.34 ms of kernels each), ..."
std::string describe_parts(const std::vector<ChromeSlice>& parts, const ProfileActivity& activity);

}  // namespace bubblescope::traces

// Refuses profiles of PyTorch that show no pipeline, or one whose steps cannot be distinguished.
#pragma once

#include <string>

#include "traces/measured/chrome_events.h"
#include "traces/measured/profile_activity.h"

namespace bubblescope::traces {

/// A run whose profile leaves its ops open needs this; the text follows "annotate the ops: ".
inline constexpr const char* kNameOps =
    "for torch.distributed.pipelining call annotate_pytorch() of "
    "tools/hooks/bubblescope_hooks.py; elsewhere put each op into its op(), or into "
    "record_function('PP:0F3')";

/// Refuses ops without micro-batch and step, because they are ambiguous: the n-th op of a rank may
/// be micro-batch n of one step, or one micro-batch of step n.
[[noreturn]] void refuse_unnumbered(const std::string& file, const std::string& op);

/// Refuses a profile without ops: says what it has instead, and what would help.
[[noreturn]] void refuse_profile(const ChromeEvents& events, const ProfileActivity& activity,
                                 const std::string& file);

}  // namespace bubblescope::traces

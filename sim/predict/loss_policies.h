// The ready policies by which the order after a loss is chosen.
#pragma once

#include <array>

#include "sim/predict/config.h"

namespace bubblescope::inline sim {

inline constexpr std::array<ReadyPriority, 3> kLossPolicies{
    ReadyPriority::kOrder, ReadyPriority::kBackward, ReadyPriority::kPath};

/// Whether ranks may choose: in other modes messages are posted in an order of their own.
inline bool has_ready_policies(const Config& config) { return !config.lower.waits_for_messages(); }

}  // namespace bubblescope::inline sim

// The longest transfer that costs may describe.
#pragma once

namespace bubblescope::inline sim {

/// In nanoseconds: 10 days. A message or copy that takes longer has a wrong size or bandwidth.
inline constexpr double kMaxTransferNanos = 10.0 * 24 * 3600 * 1e9;

}  // namespace bubblescope::inline sim

// The sizes that a schedule may have, beside kMaxRanks: a mistyped number is then an error and not
// a hang.
#pragma once

#include <cstdint>

namespace bubblescope::inline sim {

/// The micro-batches of a step.
inline constexpr std::int32_t kMaxMicrobatches = 1 << 24;

/// The ops of all ranks together, which take about 20 GB.
inline constexpr std::int64_t kMaxOps = 100'000'000;

/// The ops of one configuration of many. Larger ones take seconds and 150 MB on each thread, and
/// with so many micro-batches there is hardly any bubble.
inline constexpr std::int64_t kMaxPlannedOps = 1'000'000;

}  // namespace bubblescope::inline sim

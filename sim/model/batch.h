// Batches: several scenarios of one Program, timed side by side. The order in which a Program can
// be timed does not depend on durations, so one pass times many scenarios.
#pragma once

#include <array>
#include <cstddef>

namespace bubblescope::inline sim {

/// Scenarios that are timed together.
inline constexpr std::size_t kBatchWidth = 16;

/// A time or a duration in every scenario, in whole nanoseconds. Doubles can be compared and added
/// several at a time, and hold whole numbers up to 2^53 exactly.
using Batch = std::array<double, kBatchWidth>;

/// The longest step that a batch can time: 2^52 nanoseconds, 52 days.
inline constexpr double kMaxBatchTime = 4503599627370496.0;

/// Rounds to the nearest whole number, for values below 2^51: doubles above 2^52 have no fraction.
inline double to_whole_nanos(double duration) {
  constexpr double kShift = 1.5 * kMaxBatchTime;
  return (duration + kShift) - kShift;
}

}  // namespace bubblescope::inline sim

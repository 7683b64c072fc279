// Several scenarios of one Program side by side: the order in which a Program can be timed does not
// depend on durations, so one pass times many.
#pragma once

#include <array>
#include <cstddef>

namespace bubblescope {

/// Scenarios that are timed together.
inline constexpr std::size_t kBatchWidth = 16;

/// A time or a duration in each of them, in whole nanoseconds. Doubles, because they are compared
/// and added several at a time; up to 2^53 they hold whole numbers exactly.
using Batch = std::array<double, kBatchWidth>;

/// The longest step that a batch can time: 2^52 nanoseconds, 52 days.
inline constexpr double kLongestBatchTime = 4503599627370496.0;

/// To the nearest whole number, for what is below 2^51: above 2^52 doubles have no fraction.
inline double to_whole_nanos(double duration) {
  constexpr double kShift = 1.5 * kLongestBatchTime;
  return (duration + kShift) - kShift;
}

}  // namespace bubblescope

// Range checks for computed times and sizes. Sums must stay far below 64 bits: every input, and
// every value that is scaled by a user's number, passes one of these functions.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "sim/ir/units.h"

namespace bubblescope::inline sim {

/// The longest time, also for the sum over all ranks of a step: 36 years.
inline constexpr Nanos kMaxNanos = Nanos{1} << 60;
/// The largest size.
inline constexpr Bytes kMaxBytes = Bytes{1} << 60;

/// Rounds to the nearest nanosecond. Throws Error for a negative or non-finite time and above
/// kMaxNanos; `what` names the thing that takes this time: "the forward of a stage".
Nanos round_nanos(double nanos, const char* what);

/// Rounds to the nearest byte. Throws Error for a negative or non-finite size and above kMaxBytes.
Bytes round_bytes(double bytes, const char* what);

/// times * duration. Throws Error above kMaxNanos.
Nanos multiply(Nanos duration, std::int64_t times, const char* what);

/// left + right, of which each is at most 2^60 times or bytes. Throws Error if the sum is more;
/// `what` names what is added up: "the messages of a step".
std::int64_t add_in_range(std::int64_t left, std::int64_t right, const char* what);

/// Returns a share of an amount, which is at most the whole, rounded towards 0.
std::int64_t scale(std::int64_t amount, Millionths share);

/// Sums durations in more than 64 bits.
class DurationSum {
 public:
  void add(Nanos duration) {
    sum_ += duration;
    if (duration < shortest_) shortest_ = duration;
  }
  /// Returns the shortest duration, or 0.
  Nanos shortest() const { return shortest_; }
  /// Throws Error if the sum is above kMaxNanos.
  void expect_in_range() const;

 private:
  __extension__ typedef __int128 Wide;

  Wide sum_ = 0;
  Nanos shortest_ = 0;
};

/// Throws Error if the sum of the durations is above kMaxNanos.
void expect_in_range(std::span<const Nanos> durations);

/// Throws Error if `step` times `ranks` is above kMaxNanos: idle times are summed over ranks.
void expect_in_range(Nanos step, std::int32_t ranks);

}  // namespace bubblescope::inline sim

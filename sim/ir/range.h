// The range of computed times and sizes. Everything that is added up stays far below 64 bits: what
// enters, or is scaled by something that a user chose, goes through one of these functions.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "sim/ir/units.h"

namespace bubblescope {

/// The most that a time, or all times of a step together, may be: 36 years.
inline constexpr Nanos kMaxNanos = Nanos{1} << 60;
/// The most that a size may be.
inline constexpr Bytes kMaxBytes = Bytes{1} << 60;

/// A computed time, to the nearest nanosecond. Throws Error for what is no time or over kMaxNanos;
/// `what` takes so long, "the forward of a stage".
Nanos round_nanos(double nanos, const char* what);

/// A computed size, to the nearest byte. Throws Error for what is no size or over kMaxBytes.
Bytes round_bytes(double bytes, const char* what);

/// times * duration. Throws Error over kMaxNanos.
Nanos multiply(Nanos duration, std::int64_t times, const char* what);

/// Adds durations up, in more than 64 bits.
class DurationSum {
 public:
  void add(Nanos duration) {
    sum_ += duration;
    if (duration < least_) least_ = duration;
  }
  /// The shortest of all, or 0.
  Nanos least() const { return least_; }
  /// Throws Error where the sum is over kMaxNanos.
  void expect_in_range() const;

 private:
  __extension__ typedef __int128 Wide;

  Wide sum_ = 0;
  Nanos least_ = 0;
};

/// Throws Error where durations that are added up by whoever reads them are over kMaxNanos
/// together.
void expect_in_range(std::span<const Nanos> durations);

/// Throws Error where a step of this length is over kMaxNanos when it is added up over its ranks:
/// their idle times are.
void expect_in_range(Nanos step, std::int32_t ranks);

}  // namespace bubblescope

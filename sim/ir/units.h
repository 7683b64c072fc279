// The units of the whole program. They are integers, so that two runs agree to the last digit.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace bubblescope::inline sim {

using Nanos = std::int64_t;  ///< time and durations, in nanoseconds
using Bytes = std::int64_t;  ///< memory and message sizes, in bytes

/// A fraction, or an amount in a user's own unit, in millionths.
using Millionths = std::int64_t;
inline constexpr Millionths kWhole = 1'000'000;

/// Parses "18.522us", "3ms", "2" (bare numbers are milliseconds) and "1e-3s" to the nearest
/// nanosecond. Throws Error for anything else: negative, empty, another unit, over 100 days.
Nanos parse_duration(std::string_view text);

/// Parses "-1.25" to -1250000. Exact to the millionth; throws Error for anything else.
Millionths parse_millionths(std::string_view text);

/// "2", "1.5", "-0.25": the shortest text from which parse_millionths() reads the same amount.
std::string format_millionths(Millionths amount);

/// Parses "64MiB", "1.5GB" and "4096" (bytes) to the nearest byte. kB, MB, GB and TB are powers of
/// 1000; KiB, MiB, GiB and TiB of 1024. Throws Error for anything else and above 2^60 bytes.
Bytes parse_bytes(std::string_view text);

/// Divides a duration into `parts` nearly equal parts and returns one of them. The first `whole mod
/// parts` are one nanosecond longer, so that they add up to the whole.
inline Nanos part_of(Nanos whole, std::int64_t parts, std::int64_t part) {
  return whole / parts + (part < whole % parts ? 1 : 0);
}

/// Returns the shortest exact form in the largest unit that fits: "27 ms", "1.234 ms", "18.522 us".
std::string to_text(Nanos duration);

/// Returns the part of a time as a fraction of the whole; 0 if the whole is 0.
inline double fraction(Nanos part, Nanos whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

}  // namespace bubblescope::inline sim

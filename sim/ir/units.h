// The units of the whole program: integers, so that two runs and two paths agree to the last digit.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace bubblescope {

using Nanos = std::int64_t;  ///< time and durations, in nanoseconds
using Bytes = std::int64_t;  ///< memory and message sizes, in bytes

/// A share of a whole, or an amount in somebody else's unit, in millionths.
using Millionths = std::int64_t;
inline constexpr Millionths kWhole = 1'000'000;

/// "18.522us", "3ms", "2" (milliseconds, like every bare number), "1e-3s": exact, to the nearest
/// nanosecond. Throws Error for anything else: negative, empty, another unit, over 100 days.
Nanos parse_duration(std::string_view text);

/// "-1.25" in millionths: -1250000. Exact to the millionth; throws Error for anything else.
Millionths parse_millionths(std::string_view text);

/// "2", "1.5", "-0.25": the shortest text that parse_millionths() reads.
std::string millionths_text(Millionths amount);

/// "64MiB", "1.5GB", "4096" (bytes): exact, to the nearest byte. kB, MB, GB and TB are powers of
/// 1000; KiB, MiB, GiB and TiB of 1024. Throws Error for anything else, and for over 2^60 bytes.
Bytes parse_bytes(std::string_view text);

/// One of `parts` nearly equal parts of a duration: the first `whole mod parts` of them are one
/// nanosecond longer, so that nothing is lost.
inline Nanos part_of(Nanos whole, std::int64_t parts, std::int64_t part) {
  return whole / parts + (part < whole % parts ? 1 : 0);
}

/// "27 ms", "1.234 ms", "18.522 us": the shortest exact form in the largest unit that fits.
std::string to_text(Nanos duration);

}  // namespace bubblescope

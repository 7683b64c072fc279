// The units of the whole program: integers, so that two runs and two paths agree to the last digit.
#pragma once

#include <cstdint>

namespace bubblescope {

using Nanos = std::int64_t;  ///< time and durations, in nanoseconds
using Bytes = std::int64_t;  ///< memory and message sizes, in bytes

}  // namespace bubblescope

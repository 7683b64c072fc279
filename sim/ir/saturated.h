// Arithmetic that stops at the ends of 64 bits, for caps: where the most is as good as no cap.
// Times and sizes go through range.h, which refuses what is too large.
#pragma once

#include <cstdint>

namespace bubblescope::inline sim {

/// left * right, or what is nearest to it in 64 bits.
std::int64_t saturated_product(std::int64_t left, std::int64_t right);

/// The integer nearest to `number`, or what is nearest to that in 64 bits; 0 for what is no number.
std::int64_t round_saturated(double number);

}  // namespace bubblescope::inline sim

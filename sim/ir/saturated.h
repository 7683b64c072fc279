// Saturating 64-bit arithmetic, for caps: a cap at the limit of 64 bits is as good as none. Times
// and sizes use range.h instead, which refuses values that are too large.
#pragma once

#include <cstdint>

namespace bubblescope::inline sim {

/// Returns left * right, clamped to 64 bits.
std::int64_t saturated_product(std::int64_t left, std::int64_t right);

/// Returns left + right, clamped to 64 bits.
std::int64_t saturated_sum(std::int64_t left, std::int64_t right);

}  // namespace bubblescope::inline sim

// Implements saturating arithmetic.
#include "sim/ir/saturated.h"

#include <cmath>
#include <limits>

namespace bubblescope::inline sim {

namespace {

using Limits = std::numeric_limits<std::int64_t>;

}  // namespace

std::int64_t saturated_product(std::int64_t left, std::int64_t right) {
  std::int64_t product = 0;
  if (!__builtin_mul_overflow(left, right, &product)) return product;
  return (left < 0) == (right < 0) ? Limits::max() : Limits::min();
}

std::int64_t saturated_sum(std::int64_t left, std::int64_t right) {
  std::int64_t sum = 0;
  if (!__builtin_add_overflow(left, right, &sum)) return sum;
  return left < 0 ? Limits::min() : Limits::max();
}

std::int64_t round_saturated(double number) {
  constexpr double kBeyond = 0x1p63;  // a double cannot represent 2^63 - 1
  if (std::isnan(number)) return 0;
  if (number >= kBeyond) return Limits::max();
  return number < -kBeyond ? Limits::min() : std::llround(number);
}

}  // namespace bubblescope::inline sim

// Implements saturating arithmetic.
#include "sim/ir/saturated.h"

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

}  // namespace bubblescope::inline sim

// Sums of memory that cannot leave their range: an op may hold 2^60 bytes, and a rank's sum may not
// wrap to a small or negative amount.
#pragma once

#include <cstdint>

#include "sim/ir/error.h"
#include "sim/ir/range.h"
#include "sim/ir/units.h"

namespace bubblescope::inline sim {

[[noreturn]] inline void refuse_memory() {
  throw Error(
      "a rank holds more memory than can be counted, which is 2^60 bytes or 2^63 millionths of a "
      "unit; use smaller amounts or fewer micro-batches");
}

/// left + right, in bytes or millionths of a unit. Throws Error if the sum exceeds 64 bits.
inline std::int64_t add_memory(std::int64_t left, std::int64_t right) {
  std::int64_t sum = 0;
  if (__builtin_add_overflow(left, right, &sum)) refuse_memory();
  return sum;
}

/// times * amount, in the same way.
inline std::int64_t multiply_memory(std::int64_t amount, std::int64_t times) {
  std::int64_t product = 0;
  if (__builtin_mul_overflow(amount, times, &product)) refuse_memory();
  return product;
}

/// The bytes. Throws Error above kMaxBytes.
inline Bytes expect_countable(Bytes bytes) {
  if (bytes > kMaxBytes) refuse_memory();
  return bytes;
}

}  // namespace bubblescope::inline sim

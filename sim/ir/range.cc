// Checks ranges and rounds.
#include "sim/ir/range.h"

#include <cmath>

#include "sim/ir/counted.h"
#include "sim/ir/error.h"

namespace bubblescope::inline sim {

namespace {

[[noreturn]] void refuse_time(const std::string& what) {
  throw Error(what + " longer than 36 years; use shorter times, or fewer or smaller ops");
}

/// Throws Error for a negative number or NaN, which the messages about limits would describe
/// wrongly.
void expect_amount(double number, const char* what, const char* unit) {
  if (number >= 0) return;
  throw Error(std::string(what) + " takes " + std::to_string(number) + ' ' + unit +
              "; correct the model, the device or the assumption that it follows from");
}

}  // namespace

Nanos round_nanos(double nanos, const char* what) {
  expect_amount(nanos, what, "ns");
  if (nanos > static_cast<double>(kMaxNanos)) refuse_time(std::string(what) + " takes");
  return std::llround(nanos);
}

Bytes round_bytes(double bytes, const char* what) {
  expect_amount(bytes, what, "bytes");
  if (bytes > static_cast<double>(kMaxBytes))
    throw Error(std::string(what) +
                " takes more than 2^60 bytes; use a smaller model or smaller micro-batches");
  return std::llround(bytes);
}

Nanos multiply(Nanos duration, std::int64_t times, const char* what) {
  Nanos product = 0;
  if (__builtin_mul_overflow(duration, times, &product) || product > kMaxNanos)
    refuse_time(std::string(what) + " takes");
  return product;
}

std::int64_t add_in_range(std::int64_t left, std::int64_t right, const char* what) {
  static_assert(kMaxNanos == kMaxBytes);
  std::int64_t sum = 0;
  if (__builtin_add_overflow(left, right, &sum) || sum > kMaxBytes || sum < -kMaxBytes)
    throw Error(std::string(what) +
                " together have more than 2^60 bytes or 36 years; use smaller values, or fewer");
  return sum;
}

std::int64_t scale(std::int64_t amount, Millionths share) {
  __extension__ typedef __int128 Wide;
  return static_cast<std::int64_t>(Wide{amount} * share / kWhole);
}

void DurationSum::expect_in_range() const {
  if (sum_ > kMaxNanos) refuse_time("the sum of all ops is");
}

void expect_in_range(std::span<const Nanos> durations) {
  DurationSum sum;
  for (const Nanos duration : durations) sum.add(duration);
  sum.expect_in_range();
}

void expect_in_range(Nanos step, std::int32_t ranks) {
  if (step > kMaxNanos / ranks)
    refuse_time("the step's times on " + counted(ranks, "rank") + " together are");
}

}  // namespace bubblescope::inline sim

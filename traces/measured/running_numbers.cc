// Compares sums and sums of squares.
#include "traces/measured/running_numbers.h"

#include <algorithm>

namespace bubblescope::traces {

namespace {

constexpr std::int64_t kMaxNumber = std::int64_t{1} << 53;  ///< no file has so many events

}  // namespace

void RunningNumbers::add(std::int64_t number) {
  const auto value = static_cast<std::uint64_t>(number);
  ++count;
  largest = std::max(largest, std::min(number, kMaxNumber));
  sum += value;
  squares += value * value;
}

bool RunningNumbers::are_complete() const {
  if (count == 0) return true;
  if (largest != count - 1 && largest != count) return false;
  RunningNumbers expected;
  // Closed forms would overflow; a file has fewer events than bytes.
  for (std::int64_t number = largest - count + 1; number <= largest; ++number) expected.add(number);
  return sum == expected.sum && squares == expected.squares;
}

}  // namespace bubblescope::traces

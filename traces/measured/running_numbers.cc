// Compares sums and sums of squares.
#include "traces/measured/running_numbers.h"

#include <algorithm>

namespace bubblescope::traces {

void RunningNumbers::add(std::int64_t number) {
  const auto value = static_cast<std::uint64_t>(number);
  ++count;
  largest = std::max(largest, number);
  sum += value;
  squares += value * value;
}

bool RunningNumbers::are_complete() const {
  if (count == 0) return true;
  RunningNumbers expected;
  // Closed forms would overflow; a file has fewer events than bytes.
  for (std::int64_t number = largest - count + 1; number <= largest; ++number) expected.add(number);
  const bool begins_at_start = largest == count - 1 || largest == count;
  return begins_at_start && sum == expected.sum && squares == expected.squares;
}

}  // namespace bubblescope::traces

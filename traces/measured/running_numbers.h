// The running numbers of the host's events in a profile of PyTorch (args["Ev Idx"]), which are
// counted from 0 without gaps, in order of time.
#pragma once

#include <cstdint>

namespace bubblescope::traces {

/// A summary of the numbers, which are not kept.
struct RunningNumbers {
  std::int64_t count = 0;
  std::int64_t largest = -1;
  std::uint64_t sum = 0;      ///< modulo 2^64, as are the squares
  std::uint64_t squares = 0;  ///< their sum

  void add(std::int64_t number);

  /// Whether they are 0, 1, 2, ... or 1, 2, 3, ...; true if there are none.
  bool are_complete() const;
};

}  // namespace bubblescope::traces

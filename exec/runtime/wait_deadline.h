// A deadline for waiting that every message extends.
#pragma once

#include <algorithm>

#include "exec/runtime/limits.h"
#include "exec/runtime/step_clock.h"

namespace bubblescope::exec {

/// Passes when no message has come within the timeout, or soon after Ctrl-C.
class WaitDeadline {
 public:
  explicit WaitDeadline(const Limits& limits)
      : limits_(limits), end_(read_monotonic_clock() + limits.timeout) {}

  bool has_passed() {
    const Nanos now = read_monotonic_clock();
    if (limits_.is_interrupted()) end_ = std::min(end_, now + kShortAbortGrace);
    return now > end_;
  }

  /// Starts the timeout again. Call it when a message has come.
  void extend() { end_ = std::max(end_, read_monotonic_clock() + limits_.timeout); }

 private:
  Limits limits_;
  Nanos end_;
};

}  // namespace bubblescope::exec

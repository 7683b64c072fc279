// Lets the caller of a long command end it, where that caller lives on: Python after Ctrl-C.
#pragma once

#include <functional>

namespace bubblescope::tools {

/// While it lives, check_interrupt() on its thread calls `check`, which may throw.
class InterruptCheck {
 public:
  explicit InterruptCheck(std::function<void()> check);
  ~InterruptCheck();
  InterruptCheck(const InterruptCheck&) = delete;
  InterruptCheck& operator=(const InterruptCheck&) = delete;

 private:
  std::function<void()> outer_;
};

/// Called between the units of long work. Throws what the caller's check throws; does nothing
/// without one, and on other threads.
void check_interrupt();

}  // namespace bubblescope::tools

// Ends long commands early: after Ctrl-C, or where the caller lives on and wants it, as Python
// does.
#pragma once

#include <csignal>
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

/// Whether a caller checks for interrupts on this thread, so that a command leaves signals to it.
bool has_interrupt_check();

/// Called between the units of long work. Throws what the caller's check throws; does nothing
/// without one, and on other threads.
void check_interrupt();

/// While it lives, Ctrl-C is noted for is_interrupted() instead of ending the program; a second one
/// ends it. Where Ctrl-C was ignored, it still is.
class InterruptCatcher {
 public:
  InterruptCatcher();
  ~InterruptCatcher();
  InterruptCatcher(const InterruptCatcher&) = delete;
  InterruptCatcher& operator=(const InterruptCatcher&) = delete;

 private:
  struct sigaction before_ {};
};

/// Whether a living InterruptCatcher has noted Ctrl-C.
bool is_interrupted();

/// Ends the program as Ctrl-C does without an InterruptCatcher, so that shells see it.
[[noreturn]] void end_by_interrupt();

}  // namespace bubblescope::tools

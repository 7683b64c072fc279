// Ends long commands early: after Ctrl-C, or where the caller lives on and wants it, as Python
// does.
#pragma once

#include <signal.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <vector>

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

/// Signals that were ignored before an InterruptCatcher was made, as Ctrl-C is in the background
/// jobs of scripts.
enum class IgnoredSignals : std::uint8_t { kStayIgnored, kAreCaught };

/// While it lives, its signals are noted for is_interrupted() instead of ending the program; a
/// second one ends it. At most one may live at a time.
class InterruptCatcher {
 public:
  explicit InterruptCatcher(std::vector<int> signals = {SIGINT},
                            IgnoredSignals ignored = IgnoredSignals::kStayIgnored);
  ~InterruptCatcher();
  InterruptCatcher(const InterruptCatcher&) = delete;
  InterruptCatcher& operator=(const InterruptCatcher&) = delete;

 private:
  std::map<int, struct sigaction> before_;  ///< by signal
};

/// Whether the living InterruptCatcher has noted a signal.
bool is_interrupted();

/// The note that is_interrupted() reads, for the executor, which waits for it on many threads.
const std::atomic<bool>& interrupt_note();

/// Ends the program as Ctrl-C does without an InterruptCatcher, so that shells see it.
[[noreturn]] void end_by_interrupt();

}  // namespace bubblescope::tools

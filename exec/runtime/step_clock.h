// The clock of a step, shared by all ranks of a process.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

#include "sim/ir/units.h"

namespace bubblescope::exec {

/// How a lane waits until a given time.
enum class WaitMode : std::uint8_t {
  kSleep,  ///< frees the core until shortly before the end
  kSpin,   ///< keeps the core busy, as real work does
};

/// Measures nanoseconds since the step began, and holds the flag that aborts it.
class StepClock {
 public:
  /// Starts the step at this time of the monotonic clock; call only between steps.
  void start(Nanos begin);

  Nanos now() const;
  /// Returns a time of the step on the steady clock.
  std::chrono::steady_clock::time_point at(Nanos time) const {
    return std::chrono::steady_clock::time_point(std::chrono::nanoseconds(begin_ + time));
  }

  /// Returns at this time of the step, or soon after stop().
  void wait_until(Nanos time, WaitMode wait_mode = WaitMode::kSleep) const;

  void stop() { stopped_.store(true, std::memory_order_release); }
  bool stopped() const { return stopped_.load(std::memory_order_acquire); }

 private:
  Nanos begin_ = 0;
  std::atomic<bool> stopped_ = false;
};

/// The system's monotonic clock, which all processes of a host share.
Nanos read_monotonic_clock();

/// Backoff for polling: at first wait() only yields the core, so that a message is noticed at once;
/// later it sleeps for short times.
class PollBackoff {
 public:
  PollBackoff() : begin_(read_monotonic_clock()) {}
  void wait() const;

 private:
  Nanos begin_;
};

/// Makes sleeps of the calling thread precise to microseconds, if the system can.
void enable_precise_sleep();

/// Gives the calling thread real-time priority if the system allows it (root or CAP_SYS_NICE). Only
/// for threads that hardly ever need a core.
void raise_thread_priority();

}  // namespace bubblescope::exec

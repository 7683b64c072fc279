// The clock of one step: all ranks of a process read the same one.
#pragma once

#include <atomic>
#include <cstdint>

#include "sim/ir/units.h"

namespace bubblescope {

/// How a lane lets time pass.
enum class Pass : std::uint8_t {
  kSleep,  ///< the core is free for others until shortly before the time
  kSpin,   ///< the core is busy, as it is with real work
};

/// Nanoseconds since the step began, and the order to stop.
class StepClock {
 public:
  /// The step begins at this time of the monotonic clock. Only between steps.
  void start(Nanos begin);

  Nanos now() const;

  /// Returns at the given time of the step, or soon after stop().
  void pass_until(Nanos time, Pass pass = Pass::kSleep) const;

  void stop() { stopped_.store(true, std::memory_order_release); }
  bool stopped() const { return stopped_.load(std::memory_order_acquire); }

 private:
  Nanos begin_ = 0;
  std::atomic<bool> stopped_ = false;
};

/// The system's monotonic clock, which is the same for all processes of a host.
Nanos read_monotonic_clock();

/// Waiting for news that must be looked for: at first the core is only offered to others, so that
/// what comes soon is seen at once; later it is left for a short nap between two looks.
class Patience {
 public:
  Patience() : begin_(read_monotonic_clock()) {}
  void wait() const;

 private:
  Nanos begin_;
};

/// Lets the calling thread's sleeps end within microseconds of their time, where the system can.
void sharpen_sleep();

/// Lets the calling thread go before all others of the machine, where the system allows it (root,
/// or CAP_SYS_NICE): only for threads that hardly ever need a core.
void go_first();

}  // namespace bubblescope

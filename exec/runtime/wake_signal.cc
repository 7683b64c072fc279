// Atomic waits have no timeout, so that a thread that waits for a time waits on a condition.
#include "exec/runtime/wake_signal.h"

namespace bubblescope::exec {

void WakeSignal::wake() {
  wakes_.fetch_add(1);
  wakes_.notify_all();
  if (!is_timed_) return;
  { const std::lock_guard lock(mutex_); }  // the thread has not looked yet, or waits already
  changed_.notify_all();
}

void WakeSignal::wait_until(std::uint32_t seen, std::chrono::steady_clock::time_point time) {
  is_timed_ = true;
  {
    std::unique_lock lock(mutex_);
    changed_.wait_until(lock, time, [&] { return wakes_.load() != seen; });
  }
  is_timed_ = false;
}

}  // namespace bubblescope::exec

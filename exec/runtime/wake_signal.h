// Wakes the thread of a lane that waits.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>

namespace bubblescope::exec {

/// Has its own cache line, so that waiting lanes do not disturb each other. Only the lane's own
/// thread waits. A caller reads count() before it looks at what it waits for, so that a wake in
/// between is not lost.
class WakeSignal {
 public:
  std::uint32_t count() const { return wakes_.load(); }
  void wake();
  /// Returns once the count has changed.
  void wait(std::uint32_t seen) const { wakes_.wait(seen); }
  /// Waits likewise, but not beyond a time.
  void wait_until(std::uint32_t seen, std::chrono::steady_clock::time_point time);

 private:
  alignas(64) std::atomic<std::uint32_t> wakes_ = 0;
  std::atomic<bool> is_timed_ = false;  ///< the thread waits for a time as well
  std::mutex mutex_;
  std::condition_variable changed_;
};

}  // namespace bubblescope::exec

// The first exception of a step's threads; later ones are its consequences.
#pragma once

#include <cstdint>
#include <exception>
#include <mutex>

namespace bubblescope::exec {

/// Keeps one exception and the rank that threw it.
class FirstFailure {
 public:
  /// Notes the current exception as this rank's, unless there is one already. Any thread may call.
  void note(std::int32_t rank) {
    const std::lock_guard lock(mutex_);
    if (exception_ != nullptr) return;
    exception_ = std::current_exception();
    rank_ = rank;
  }
  /// Call this only while no lane runs.
  void forget() { exception_ = nullptr; }
  /// Returns the exception if it was this rank's. Call this only while no lane runs.
  std::exception_ptr of(std::int32_t rank) const { return rank == rank_ ? exception_ : nullptr; }

 private:
  std::mutex mutex_;
  std::exception_ptr exception_;
  std::int32_t rank_ = 0;
};

}  // namespace bubblescope::exec

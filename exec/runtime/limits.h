// Limits on the time that a process waits for its ranks and for the other processes of its run.
#pragma once

#include <atomic>
#include <functional>
#include <string>

#include "sim/ir/units.h"

namespace bubblescope::exec {

/// How long a process that is ended by Ctrl-C, or by a failure of its own, waits for the others. It
/// must be short, because a launcher soon kills those that remain.
inline constexpr Nanos kShortAbortGrace = 400'000'000;

struct Limits {
  Nanos timeout = 30'000'000'000;  ///< how long to wait without any message or progress
  const std::atomic<bool>* interrupted = nullptr;  ///< may be null; not owned
  /// Called on another thread when a call into a library does not return and cannot be cancelled;
  /// it must end the program. `why` is a message for the user. If empty, the call is waited for.
  std::function<void(const std::string& why)> abandon = {};

  bool is_interrupted() const { return interrupted != nullptr && interrupted->load(); }
};

}  // namespace bubblescope::exec

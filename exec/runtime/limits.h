// How long one process waits for others.
#pragma once

#include <atomic>
#include <functional>
#include <string>

#include "sim/ir/units.h"

namespace bubblescope::exec {

struct Limits {
  Nanos timeout = 30'000'000'000;                  ///< without any news
  const std::atomic<bool>* interrupted = nullptr;  ///< may be null; not owned
  /// Called, on another thread, when a call into a library does not return and cannot be stopped;
  /// `why` is a message for the user. It has to end the program. Empty: the call is waited for.
  std::function<void(const std::string& why)> abandon = {};
};

}  // namespace bubblescope::exec

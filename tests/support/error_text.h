// The text of the error that an action ends with.
#pragma once

#include <functional>
#include <string>

#include "sim/ir/error.h"

namespace bubblescope::tests {

/// Empty if the action does not throw an Error.
inline std::string error_of(const std::function<void()>& run) {
  try {
    run();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace bubblescope::tests

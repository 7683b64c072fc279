// The text of the error that an action ends with.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <string_view>

#include "sim/ir/error.h"

namespace bubblescope::tests {

/// Returns the text of the Error that the action throws; empty if it throws none.
inline std::string error_of(const std::function<void()>& run) {
  try {
    run();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

/// Whether the action throws an Error whose text contains `part`. A failure shows the whole text.
inline testing::AssertionResult fails_with(const std::function<void()>& run,
                                           std::string_view part) {
  const std::string text = error_of(run);
  if (!text.empty() && text.find(part) != std::string::npos) return testing::AssertionSuccess();
  return testing::AssertionFailure() << "\"" << text << "\" does not say \"" << part << "\"";
}

}  // namespace bubblescope::tests

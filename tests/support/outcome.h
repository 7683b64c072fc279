// The outcome that a command must have, whatever else it prints.
#pragma once

namespace bubblescope::tests {

struct OutcomeCase {
  const char* arguments;
  int status;
  const char* says;  ///< a part of what it prints, on either stream
};

/// Runs `bubblescope ARGUMENTS`, and expects this status and this text, and no uncaught exception.
void expect_outcome(const OutcomeCase& test);

}  // namespace bubblescope::tests

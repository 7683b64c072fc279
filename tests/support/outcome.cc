// Compares the outcome of a command.
#include "tests/support/outcome.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/support/command.h"

namespace bubblescope::tests {

void expect_outcome(const OutcomeCase& test) {
  const CommandOutcome outcome = run_with_messages(test.arguments);
  EXPECT_EQ(outcome.status, test.status) << test.arguments << "\n" << outcome.output;
  EXPECT_NE(outcome.output.find(test.says), std::string::npos) << test.arguments << "\n"
                                                               << outcome.output;
  EXPECT_EQ(outcome.output.find("terminate"), std::string::npos) << test.arguments;
}

}  // namespace bubblescope::tests

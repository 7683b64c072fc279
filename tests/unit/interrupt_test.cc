// Signals that end long commands early.
#include "tools/interrupt.h"

#include <gtest/gtest.h>

#include <csignal>

namespace bubblescope::tests {
namespace {

TEST(InterruptCatcher, NotesEverySignalThatItIsGiven) {
  for (const int signal : {SIGINT, SIGTERM}) {
    const tools::InterruptCatcher catcher({SIGINT, SIGTERM});
    EXPECT_FALSE(tools::is_interrupted());
    std::raise(signal);
    EXPECT_TRUE(tools::is_interrupted());
    EXPECT_TRUE(tools::interrupt_note().load());
  }
  EXPECT_FALSE(tools::is_interrupted());
}

TEST(InterruptCatcher, LeavesIgnoredSignalsIgnoredUnlessItIsToCatchThem) {
  const auto before = std::signal(SIGTERM, SIG_IGN);
  {
    const tools::InterruptCatcher catcher({SIGTERM});
    std::raise(SIGTERM);
    EXPECT_FALSE(tools::is_interrupted());
  }
  {
    const tools::InterruptCatcher catcher({SIGTERM}, tools::IgnoredSignals::kAreCaught);
    std::raise(SIGTERM);
    EXPECT_TRUE(tools::is_interrupted());
  }
  std::raise(SIGTERM);  // is ignored again
  std::signal(SIGTERM, before);
}

}  // namespace
}  // namespace bubblescope::tests

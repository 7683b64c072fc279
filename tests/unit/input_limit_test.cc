// The maximum size of a file that is read.
#include "traces/files/input_limit.h"

#include <gtest/gtest.h>

#include "tools/flags/take_input_limit.h"

namespace bubblescope::tests {

TEST(InputLimit, EndsWithItsScope) {
  const Bytes before = traces::input_limit().size;
  {
    const traces::InputLimitScope scope;
    const tools::Arguments left =
        tools::take_input_limit({"--pp=2", "--max-input=1MiB", "-m", "4"});
    EXPECT_EQ(left, (tools::Arguments{"--pp=2", "-m", "4"}));
    EXPECT_EQ(traces::input_limit().size, 1 << 20);
    EXPECT_TRUE(traces::input_limit().is_given);
  }
  EXPECT_EQ(traces::input_limit().size, before);
  EXPECT_FALSE(traces::input_limit().is_given);
}

}  // namespace bubblescope::tests

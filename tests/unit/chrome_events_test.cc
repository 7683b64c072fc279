// Times of Chrome traces, which are decimal microseconds.
#include "traces/measured/chrome_events.h"

#include <gtest/gtest.h>

#include <optional>

namespace bubblescope::tests {
namespace {

TEST(ChromeEvents, TimesAreExactNanoseconds) {
  const struct {
    const char* text;
    std::optional<Nanos> nanos;
  } cases[] = {
      {"0", 0},
      {"12", 12'000},
      {"848671.6747283936", 848'671'675},
      {"1712195495505583.125", 1'712'195'495'505'583'125},  // more digits than a double has
      {"-1.5", -1'500},
      {"0.0004", 0},
      {"0.0005", 1},
      {"1e-05", 0},
      {"1.5e3", 1'500'000},
      {"9999999999999999999", std::nullopt},
      {"1e300", std::nullopt},
      {"", std::nullopt},
      {"1.2.3", std::nullopt},
      {"abc", std::nullopt},
  };
  for (const auto& one : cases) EXPECT_EQ(traces::parse_micros(one.text), one.nanos) << one.text;
}

}  // namespace
}  // namespace bubblescope::tests

// Tests that an op whose end was lost is named before the report.
#include <gtest/gtest.h>

#include <string>

#include "tests/support/command.h"
#include "tests/support/temporary_folder.h"
#include "traces/files/file.h"

namespace bubblescope::tests {
namespace {

class EmptyOps : public TemporaryFolder {
 protected:
  /// The report on 16 micro-batches on one rank, each 100 us forward and 200 us backward, but for
  /// one forward.
  std::string analyze(int odd_duration) const {
    std::string events;
    for (int microbatch = 0; microbatch < 16; ++microbatch) {
      const std::string number = std::to_string(microbatch);
      const int start = 300 * microbatch;
      events += slice("0F" + number, start, microbatch == 5 ? odd_duration : 100) + ",";
      events += slice("0B" + number, start + 100, 200) + (microbatch < 15 ? "," : "");
    }
    traces::write_file(path("trace.json"), "[" + events + "]");
    return run_command("analyze " + path("trace.json")).output;
  }

  static std::string slice(const std::string& op, int start, int duration) {
    return R"({"ph":"X","tid":0,"pid":0,"name":")" + op + R"(","ts":)" + std::to_string(start) +
           R"(,"dur":)" + std::to_string(duration) + "}";
  }
};

TEST_F(EmptyOps, AreAReservation) {
  const std::string text = analyze(0);
  EXPECT_TRUE(
      text.starts_with("trusted with reservations:\n  0F5 on rank 0 takes 0 ms, but "
                       "usually 100 us: its end, or what it computed, is missing"))
      << text;
  EXPECT_EQ(text.find("as long as usual"), text.npos) << text;  // no other op is a pause for it
}

TEST_F(EmptyOps, ShortMicrobatchesAreNone) {
  for (const int duration : {1, 50, 100}) {
    const std::string text = analyze(duration);
    EXPECT_EQ(text.find("takes"), text.npos) << text;
  }
}

}  // namespace
}  // namespace bubblescope::tests

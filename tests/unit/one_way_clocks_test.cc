// Tests clocks that differ where no result comes back, or where the rank between is missing.
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "sim/ir/error.h"
#include "tests/support/chrome_text.h"
#include "tests/support/error_text.h"
#include "traces/files/trace_format.h"
#include "traces/measured/assemble_steps.h"

namespace bubblescope::tests {
namespace {

constexpr int kOrigin = 1'000'000'000;    // us
constexpr int kTenMinutes = 600'000'000;  // us
constexpr const char* kOneWay = "forwards alone cannot align clocks";

/// A rank, and how far its clock is ahead, in us.
struct RankClock {
  int rank = 0;
  int ahead = 0;
};

/// Two micro-batches on one of so many ranks. Every op takes 1000 us, and every message 100 us.
std::string write_rank(const RankClock& clock, int ranks, bool has_backwards) {
  Events events;
  for (int microbatch = 0; microbatch < 2; ++microbatch) {
    const std::string arguments = R"("step":0,"microbatch":)" + std::to_string(microbatch) +
                                  R"(,"pp_rank":)" + std::to_string(clock.rank);
    const int forward = kOrigin + clock.ahead + 1'100 * clock.rank + 1'000 * microbatch;
    events.slice("forward", 0, 0, forward, 1'000, arguments);
    const int turn = kOrigin + clock.ahead + 1'100 * ranks + 2'000;
    const int backward = turn + 1'100 * (ranks - 1 - clock.rank) + 1'000 * microbatch;
    if (has_backwards) events.slice("backward", 0, 0, backward, 1'000, arguments);
  }
  return events.list();
}

/// Assembles files of ranks; returns the refusal, or nothing where there is none.
std::string refusal_of(const std::vector<RankClock>& clocks, int ranks, bool has_backwards) {
  traces::ObservedTrace trace;
  for (const RankClock& clock : clocks) {
    const std::string name = "rank" + std::to_string(clock.rank) + ".json";
    const std::string text = write_rank(clock, ranks, has_backwards);
    traces::append(trace, traces::parse_trace({name, text}));
  }
  return error_of([&] { traces::assemble_steps(std::move(trace)); });
}

TEST(OneWayClocks, OfForwardsThatAreFarApartAreRefused) {
  for (const int ahead : {kTenMinutes, -kTenMinutes}) {
    const std::string said = refusal_of({{0, 0}, {1, ahead}}, 2, false);
    EXPECT_NE(said.find(kOneWay), std::string::npos) << said;
    EXPECT_NE(said.find("rank 1 are 599.99"), std::string::npos) << said;
  }
}

TEST(OneWayClocks, OfForwardsThatMayBeOneAreNotRefused) {
  EXPECT_EQ(refusal_of({{0, 0}, {1, 0}}, 2, false), "");
  EXPECT_EQ(refusal_of({{0, 0}, {1, 500}}, 2, false), "");
}

TEST(OneWayClocks, AreAlignedByBackwards) {
  EXPECT_EQ(refusal_of({{0, 0}, {1, kTenMinutes}}, 2, true), "");
  EXPECT_EQ(refusal_of({{0, 0}, {1, -kTenMinutes}}, 2, true), "");
}

// Nothing shows when rank 1 ran, for its neighbours do not agree on the time.
TEST(OneWayClocks, AroundAMissingRankAreTheCause) {
  const std::string said = refusal_of({{0, 0}, {2, -kTenMinutes}}, 3, true);
  EXPECT_NE(said.find("but none of 1"), std::string::npos) << said;
  EXPECT_NE(said.find("rank 1 has no trace, and the times of the others do not show"),
            std::string::npos)
      << said;
  EXPECT_EQ(said.find("record whole steps"), std::string::npos) << said;
}

}  // namespace
}  // namespace bubblescope::tests

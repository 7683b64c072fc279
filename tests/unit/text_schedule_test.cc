// The text form, as tests and people write it.
#include "traces/schedules/text_schedule.h"

#include <gtest/gtest.h>

#include "tests/support/malformed.h"
#include "tests/support/random_schedule.h"

namespace bubblescope::tests {
namespace {

Schedule read(const std::string& text) { return traces::parse_schedule_text(text, "f.txt"); }

TEST(TextSchedule, SeparatesRanksByLinesOrBars) {
  const Schedule schedule = read("0F0 0B0\n1F0 1B0\n");
  EXPECT_EQ(schedule.shape, (Shape{2, 1, 1, 1, {}}));
  EXPECT_TRUE(read("0F0 0B0 | 1F0 1B0") == schedule);
  EXPECT_TRUE(read("0F0 0B0|1F0 1B0") == schedule);
  EXPECT_TRUE(read("# one rank per line\n\n  0F0\t0B0  # the first\r\n1F0 1B0") == schedule);
}

TEST(TextSchedule, HasSlicesRecomputationPairsAndIdleSlots) {
  const Schedule schedule = read("_ 0F0 0F0.1 0R0.1 0B0.1 (0F1;0B0)OVERLAP_F_B");
  EXPECT_EQ(schedule.shape.slices, 2);
  EXPECT_EQ(schedule.shape.microbatches, 2);
  EXPECT_EQ(schedule.order[0][2], (Op{0, 0, 1, OpKind::kRecompute}));
  EXPECT_EQ(schedule.order[0][5].pairing, Pairing::kSecond);
  EXPECT_EQ(schedule.posted[0][0].kind, OpKind::kIdle);
  EXPECT_EQ(traces::write_schedule_text(schedule),
            "_ 0F0 0F0.1 0R0.1 0B0.1 (0F1;0B0)OVERLAP_F_B\n");
}

TEST(TextSchedule, RefusesWhatIsMalformed) { expect_refusals("text_schedule.txt", read); }

TEST(TextSchedule, SurvivesDamage) {
  expect_survival("# a\n_ 0F0.1 0R0 (0F1;0B0)OVERLAP_F_B | 1UNSHARD 1RECV_F0\n2F0\n", read);
}

TEST(TextSchedule, RoundTripsRandomSchedules) {
  for (std::uint32_t seed = 0; seed < 1000; ++seed) {
    RandomTraits traits;
    traits.slices = seed % 2 == 1;
    traits.recompute = seed % 5 == 0;
    traits.messages = seed % 3 == 1;
    traits.idle = seed % 3 == 2;
    Schedule schedule = random_schedule(seed, traits);
    schedule.name = "f";
    const std::string text = traces::write_schedule_text(schedule);
    ASSERT_TRUE(read(text) == schedule) << "seed " << seed << "\n" << text;
  }
}

}  // namespace
}  // namespace bubblescope::tests

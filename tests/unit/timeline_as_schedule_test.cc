// A timeline in place of a schedule: its times are never dropped silently.
#include <gtest/gtest.h>

#include <string>

#include "tests/support/command.h"
#include "tests/support/temporary_folder.h"

namespace bubblescope::tests {
namespace {

class TimelineAsSchedule : public TemporaryFolder {
 protected:
  void SetUp() override {
    TemporaryFolder::SetUp();
    saved_ = path("saved.json");
    ASSERT_EQ(run_with_messages("simulate 1f1b --pp 2 -m 4 --f 250 --save " + saved_).status, 0);
  }

  std::string saved_;
};

TEST_F(TimelineAsSchedule, IsRefusedWhereItsTimesWouldBeDropped) {
  for (const std::string command : {"simulate ", "run ", "convert --to goal "}) {
    const CommandOutcome refused = run_with_messages(command + saved_);
    EXPECT_EQ(refused.status, 2) << command;
    EXPECT_NE(refused.output.find("'bubblescope analyze " + saved_ + "'"), std::string::npos)
        << refused.output;
  }
  EXPECT_EQ(run_command("compare " + saved_).status, 2);
}

// Each of these leaves the forwards, the backwards or both at a default.
TEST_F(TimelineAsSchedule, IsRefusedWhereDefaultsWouldReplaceSomeOfItsTimes) {
  for (const std::string flags : {"--copy 3", "--optimizer-step 3", "--p2p 3", "--output-layer 3",
                                  "--f 10", "--b 5", "--i 5 --w 5", "--f 10 --i 5", "--f 10 --w 5"})
    EXPECT_EQ(run_command("simulate " + saved_ + " " + flags).status, 2) << flags;
  EXPECT_EQ(run_command("compare " + saved_ + ",1f1b --pp 2 -m 4 --p2p 3").status, 2);
  const CommandOutcome refused = run_with_messages("simulate " + saved_ + " --f 10");
  EXPECT_NE(refused.output.find("add --b, or --costs FILE or --model"), std::string::npos)
      << refused.output;
}

// A full backward does not say how long its halves take.
TEST_F(TimelineAsSchedule, NeedsBackwardsOrBothHalvesWhereTheyAreSplit) {
  ASSERT_EQ(run_command("simulate zb-h1 --pp 2 -m 4 --save " + saved_).status, 0);
  EXPECT_EQ(run_command("simulate --f 10 --i 10 " + saved_).status, 2);
  EXPECT_EQ(run_command("simulate --f 10 --b 20 " + saved_).status, 0);
  EXPECT_EQ(run_command("simulate --f 10 --i 10 --w 10 " + saved_).status, 0);
}

TEST_F(TimelineAsSchedule, IsAScheduleWhereCostsAreGivenOrNotNeeded) {
  for (const std::string command : {"simulate --f 10 --b 20 ", "simulate --f 10 --i 10 --w 9 ",
                                    "check ", "convert --to pytorch-csv "})
    EXPECT_EQ(run_command(command + saved_).status, 0) << command;
}

}  // namespace
}  // namespace bubblescope::tests

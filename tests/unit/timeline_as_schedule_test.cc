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
  EXPECT_EQ(run_command("compare " + saved_).status, 1);
}

TEST_F(TimelineAsSchedule, IsAScheduleWhereCostsAreGivenOrNotNeeded) {
  for (const std::string command : {"simulate --f 10 ", "check ", "convert --to pytorch-csv "})
    EXPECT_EQ(run_command(command + saved_).status, 0) << command;
}

}  // namespace
}  // namespace bubblescope::tests

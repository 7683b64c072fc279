// A timeline where a schedule is asked for: its times are never dropped silently.
#include <gtest/gtest.h>

#include <string>

#include "sim/ir/error.h"
#include "tests/support/command.h"
#include "tests/support/temporary_folder.h"

namespace bubblescope {
namespace {

class TimelineAsSchedule : public TemporaryFolder {
 protected:
  void SetUp() override {
    TemporaryFolder::SetUp();
    saved_ = path("saved.json");
    ASSERT_EQ(
        call_command(run_simulate, {"1f1b", "--pp", "2", "-m", "4", "--f", "250", "--save", saved_})
            .status,
        0);
  }

  /// What a command says that refuses the timeline; empty where it does not.
  std::string refusal(int (*command)(const Arguments&), Arguments arguments) const {
    try {
      call_command(command, arguments);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  }

  std::string saved_;
};

TEST_F(TimelineAsSchedule, IsRefusedWhereItsTimesWouldBeDropped) {
  EXPECT_NE(refusal(run_simulate, {saved_}).find("'bubblescope analyze " + saved_ + "'"),
            std::string::npos);
  EXPECT_NE(refusal(run_run, {saved_}), "");
  EXPECT_NE(refusal(run_convert, {saved_, "--to", "goal"}), "");
  EXPECT_NE(call_command(run_compare, {saved_}).status, 0);
}

TEST_F(TimelineAsSchedule, IsAScheduleWhereCostsAreGivenOrNotNeeded) {
  EXPECT_EQ(refusal(run_simulate, {saved_, "--f", "10"}), "");
  EXPECT_EQ(refusal(run_check, {saved_}), "");
  EXPECT_EQ(refusal(run_convert, {saved_, "--to", "pytorch-csv"}), "");
}

}  // namespace
}  // namespace bubblescope

// Tests lists of schedules on the command line.
#include "tools/flags/schedule_list.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/support/command.h"

namespace bubblescope::tests {
namespace {

using Names = std::vector<std::string>;

TEST(ScheduleList, HasEveryScheduleOnceByAnyOfItsNames) {
  EXPECT_EQ(tools::list_schedules(" gpipe,GPipe , 1f1b,PipeDream-Flush,"),
            (Names{"gpipe", "1f1b"}));
  EXPECT_EQ(tools::list_schedules("a.csv,b.csv,a.csv"), (Names{"a.csv", "b.csv"}));
  EXPECT_EQ(tools::list_schedules(","), Names{});
}

TEST(ScheduleList, KeepsTheSpellingThatWasGivenFirst) {
  EXPECT_EQ(tools::list_schedules("1F1B,1f1b"), Names{"1F1B"});
}

TEST(ScheduleList, IsComparedOncePerSchedule) {
  const CommandOutcome outcome = run_command("compare 1f1b,gpipe,1F1B --pp 2 -m 4 --format json");
  EXPECT_EQ(nlohmann::json::parse(outcome.output)["reports"].size(), 2u) << outcome.output;
  const CommandOutcome shapes = run_command("compare 1f1b --shapes 2x4,2x4,2x8 --format json");
  EXPECT_EQ(nlohmann::json::parse(shapes.output)["reports"].size(), 2u) << shapes.output;
}

// Scripts that give several names get a list, also where the names are one schedule.
TEST(ScheduleList, IsCheckedOncePerSchedule) {
  const CommandOutcome outcome = run_command("check 1f1b 1F1B --pp 2 -m 4 --format json");
  const auto verdicts = nlohmann::json::parse(outcome.output);
  ASSERT_TRUE(verdicts.is_array());
  EXPECT_EQ(verdicts.size(), 1u);
}

}  // namespace
}  // namespace bubblescope::tests

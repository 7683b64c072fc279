// A plan names the schedules and numbers that it was asked for and cannot use, with the reasons.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "tests/support/command.h"

namespace bubblescope::tests {
namespace {

using Json = nlohmann::json;

bool contains(const std::string& text, const std::string& words) {
  return text.find(words) != std::string::npos;
}

Json plan(const std::string& arguments) { return read_report("plan " + arguments); }

constexpr const char* kSliced = "--pp 4 -m 16 --schedules seq1f1b,terapipe,1f1b --f 10";
constexpr const char* kOnDevices =
    "plan --model llama3-8b --gpu h100 --gpus 16 --global-batch-size 16 --schedules 1f1b ";

TEST(PlanLeftOut, DefaultsOfSlicesAreNamed) {
  const std::string text = run_with_messages(std::string("plan ") + kSliced).output;
  EXPECT_TRUE(contains(text, "--slices 2 (of schedules that slice sequences) by default")) << text;
  EXPECT_FALSE(
      contains(run_with_messages(std::string("plan --slices 4 ") + kSliced).output, "by default"));
}

TEST(PlanLeftOut, SlicesAreInEveryOutputThatHasAny) {
  const Json sliced = plan(std::string("--slices 4 ") + kSliced)["plans"];
  for (const Json& entry : sliced)
    EXPECT_EQ(entry.value("slices", 1), entry["schedule"] == "1f1b" ? 1 : 4) << entry;
  const std::string csv =
      run_command(std::string("plan --slices 4 --format csv ") + kSliced).output;
  EXPECT_TRUE(contains(csv, ",tie_group,slices\n") && contains(csv, ",4\n")) << csv;
  EXPECT_TRUE(contains(run_command(std::string("plan --wide ") + kSliced).output, " slices "));
  const std::string usual = run_command("plan --pp 4 -m 8 --schedules 1f1b,zb-h1 --wide").output;
  EXPECT_FALSE(contains(usual, "slices")) << usual;
}

TEST(PlanLeftOut, NamedSchedulesThatAreOtherOnesHaveAReason) {
  const Json sliced = plan(std::string("--slices 1 ") + kSliced)["refused"];
  ASSERT_EQ(sliced.size(), 2U) << sliced;
  EXPECT_EQ(sliced[0]["schedule"], "seq1f1b");
  EXPECT_EQ(sliced[0]["configurations"], 0);
  EXPECT_EQ(sliced[0]["reason"], "needs --slices 2 or more: with fewer it is another schedule");
  const Json chunked = plan("--pp 4 -m 16 --vpp 1 --schedules interleaved,1f1b")["refused"];
  ASSERT_EQ(chunked.size(), 1U) << chunked;
  EXPECT_EQ(chunked[0]["reason"], "needs --vpp 2 or more: with fewer it is another schedule");
  const std::string text =
      run_command("plan --pp 4 -m 16 --vpp 1 --schedules interleaved,1f1b").output;
  EXPECT_TRUE(contains(text, "not tried: needs --vpp 2")) << text;
  EXPECT_TRUE(contains(text, "1 plan of 1 configuration that was tried")) << text;
}

// Everything on one rank runs in the order of the first schedule.
TEST(PlanLeftOut, NamedSchedulesThatRunTheSameOrderHaveAReason) {
  const Json answer = plan("--pp 1 -m 4 --schedules 1f1b,eager-1f1b");
  EXPECT_EQ(answer["plans"].size(), 1U);
  ASSERT_EQ(answer["refused"].size(), 1U) << answer;
  EXPECT_EQ(answer["refused"][0]["schedule"], "eager-1f1b");
}

TEST(PlanLeftOut, SchedulesOfAllMayBeMissing) {
  EXPECT_TRUE(plan("--pp 4 -m 8 --vpp 1 --schedules all")["refused"].empty());
}

// Where nothing fits, the reason is that of the schedule, and no number of its only configuration
// repeats it.
TEST(PlanLeftOut, APlanThatDoesNotFitHasItsReasonOnce) {
  const std::string text =
      run_with_messages(
          "plan --schedules 1f1b --model llama3-70b --gpu h100 --gpus 8 --global-batch-size 16 "
          "--pp 2 --tp 4 --micro-batch-size 1 --recompute none --split even")
          .output;
  const std::size_t reason = text.find("states and one micro-batch take");
  ASSERT_NE(reason, text.npos) << text;
  EXPECT_EQ(text.find("states and one micro-batch take", reason + 1), text.npos) << text;
}

TEST(PlanLeftOut, ListedNumbersThatNothingCanUseHaveAReason) {
  const auto said = [](const std::string& flags) {
    return run_with_messages(kOnDevices + flags).output;
  };
  EXPECT_TRUE(contains(said("--tp 8,3"), "can use --tp 3: no --tp 3 x --cp x --pp divides 16 dev"));
  EXPECT_TRUE(contains(said("--tp 2 --pp 4,5"), "can use --pp 5: no --tp x --cp x --pp 5 divides"));
  EXPECT_TRUE(contains(said("--tp 8 --micro-batch-size 1,3"), "can use --micro-batch-size 3"));
  EXPECT_FALSE(contains(said("--tp 4,8 --pp 1,2"), "can use")) << said("--tp 4,8 --pp 1,2");
  EXPECT_TRUE(contains(
      run_with_messages("plan --model mixtral-8x7b --gpu h100 --gpus 16 --global-batch-size 16 "
                        "--schedules 1f1b --ep 3,8")
          .output,
      "can use --ep 3: --ep 3 does not divide the model's experts"));
  EXPECT_TRUE(contains(run_with_messages("plan --pp 4 -m 8 --vpp 3 --schedules 1f1b").output,
                       "can use --vpp 3: 1f1b always has 1"));
  EXPECT_TRUE(
      contains(run_with_messages("plan --pp 4 -m 8 --vpp 1,2 --schedules interleaved").output,
               "can use --vpp 1: interleaved needs 2 or more: with fewer it is another schedule"));
}

}  // namespace
}  // namespace bubblescope::tests

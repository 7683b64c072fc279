// plan: the command of each plan simulates it.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/support/command.h"
#include "tests/support/temporary_folder.h"

namespace bubblescope::tests {
namespace {

using Json = nlohmann::json;

constexpr const char* kProgram = "bubblescope ";

/// Expects that the commands of the first plans give their steps, bubbles and memory.
void expect_same_steps(const std::string& arguments, std::size_t least = 2) {
  SCOPED_TRACE("plan " + arguments);
  const Json plans = read_report("plan " + arguments + " --top 12")["plans"];
  EXPECT_GE(plans.size(), least);
  for (const Json& plan : plans) {
    const std::string command = plan["command"];
    SCOPED_TRACE(command);
    ASSERT_TRUE(command.starts_with(kProgram));
    const Json step = read_report(command.substr(std::string(kProgram).size()));
    const Json whole = step.contains("step_ns") ? step["step_ns"] : step["makespan_ns"];
    EXPECT_EQ(whole, plan["step_ns"]);
    EXPECT_EQ(step["bubble"]["ratio"], plan["bubble_ratio"]);
    if (plan["head_room_bytes"].is_null()) continue;
    EXPECT_EQ(step["head_room_bytes"], plan["head_room_bytes"]);
    EXPECT_EQ(step["mfu"], plan["mfu"]);
  }
}

TEST(PlanCommands, SimulateShapes) {
  expect_same_steps("--pp 2,4 -m 8,16 --schedules all,searched --f 10 --i 10 --w 9 --cap 8");
  expect_same_steps("--pp 2,4 --vpp 1,2,4 -m 8,16 --slices 2 --f 10 --b 20 --p2p 0.5");
  expect_same_steps("--pp 2,4,8 -m 32 --total-f 80 --total-i 81 --total-w 70 --cap 12");
  for (const char* const total :
       {"--total-b 161", "--total-b 200ns", "--total-b 13ns --total-i 7ns",
        "--total-b 13ns --total-w 7ns", "--total-b 3 --total-i 7"})
    expect_same_steps(std::string("--pp 3,7 -m 14 --total-f 80 ") + total);
  expect_same_steps(
      "--pp 4 --vpp 2 -m 16 --profile megatron --moe-overlap --f 3 --i 2 --w 1 --p2p-mode eager:2");
}

TEST(PlanCommands, SimulateModels) {
  const std::string small = "--model llama3-8b --gpus 8 --global-batch-size 64 ";
  expect_same_steps(small + "--schedules 1f1b,interleaved,zb-v,1f1b-vocab --cp 1,2");
  expect_same_steps(small + "--zero 3 --unshard-lookahead auto,2 --schedules 1f1b,zb-h1");
  expect_same_steps(small + "--gpu 4xh100,4xa100 --schedules 1f1b,zb-h1");
  expect_same_steps(small + "--first-layers 5 --schedules 1f1b --pp 4", 1);
  expect_same_steps(small + "--gpu a100-40 --recompute modules,full --schedules 1f1b");
  expect_same_steps(
      "--model mixtral-8x7b --gpu a100 --gpus 32 --global-batch-size 128 --schedules 1f1b --etp "
      "1,2");
  expect_same_steps(
      "--model gpt3-175b --gpu a100 --gpus 128 --global-batch-size 256 --recompute full "
      "--recompute-method block --recompute-num-layers 1,2 --schedules 1f1b --send-budget none,2");
}

// Flags that the question does not have were said to change nothing.
TEST(PlanCommands, HaveNoTimesThatFollowFromOthers) {
  const Json plans =
      read_report("plan --pp 4 -m 8 --schedules 1f1b,zb-h1 --total-f 40 --total-b 80")["plans"];
  ASSERT_EQ(plans.size(), 2U);
  for (const Json& plan : plans) {
    const std::string command = plan["command"];
    EXPECT_NE(command.find(" --f 10000000ns --b 20000000ns --pp 4 -m 8"), command.npos) << command;
    const CommandOutcome outcome = run_with_messages(command.substr(std::string(kProgram).size()));
    EXPECT_EQ(outcome.output.find("changes nothing"), std::string::npos) << outcome.output;
  }
}

class PlanCommandWords : public TemporaryFolder {};

std::string last_line_of(const std::string& output) {
  const std::size_t begin = output.find("simulate #1: ");
  return begin == output.npos ? output : output.substr(begin, output.find('\n', begin) - begin);
}

TEST_F(PlanCommandWords, AreQuoted) {
  std::ofstream(path("own costs.json"))
      << R"({"format":"bubblescope-costs/1","stages":[)"
         R"({"forward":1,"backward":2},{"forward":2,"backward":3}]})";
  const std::string costs = "--costs '" + path("own costs.json") + "'";
  expect_same_steps("--pp 2 -m 4 --schedules 1f1b " + costs, 1);
  EXPECT_EQ(last_line_of(run_command("plan --pp 2 -m 4 --schedules 1f1b " + costs).output),
            "simulate #1: bubblescope simulate 1f1b " + costs + " --pp 2 -m 4");
}

TEST_F(PlanCommandWords, AreThoseOfAJournal) {
  const std::string asked =
      run_command("plan --pp 2 -m 4 --schedules 1f1b --f 3 --resume " + path("j")).output;
  EXPECT_EQ(last_line_of(asked), "simulate #1: bubblescope simulate 1f1b --f 3 --pp 2 -m 4");
  EXPECT_EQ(last_line_of(run_command("plan --merge " + path("j")).output), last_line_of(asked));
}

}  // namespace
}  // namespace bubblescope::tests

#include "traces/measured/timer_log.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "tests/support/error_text.h"

namespace bubblescope::tests {
namespace {

const std::string kMegatron = R"(
 [2025-03-02 10:11:12] iteration       10/     100 | consumed samples: 640 | elapsed time per iteration (ms): 1000.0 | learning rate: 1.0E-04 |
(min, max) time across ranks (ms):
    forward-backward ...............................: (940.00, 941.00)
    forward-compute ................................: (200.00, 260.00)
    backward-compute ...............................: (400.00, 520.00)
    forward-recv ...................................: (0.02, 90.00)
    optimizer ......................................: (30.00, 31.00)
 [2025-03-02 10:11:22] iteration       20/     100 | elapsed time per iteration (ms): 1000.0 |
)";

TEST(TimerLog, BoundsWhatEveryRankComputes) {
  const traces::TimerLog log = traces::read_timer_log(kMegatron, "train.log");
  ASSERT_NE(log.find("forward-recv"), nullptr);
  EXPECT_EQ(log.find("forward-recv")->max_ms, 90);
  EXPECT_EQ(log.iteration_ms, 1000);
  // A rank computes at least 200 + 400 and at most 260 + 520 of 1000 ms.
  const auto share = log.outside;
  ASSERT_TRUE(share);
  EXPECT_DOUBLE_EQ(share->low, 0.22);
  EXPECT_DOUBLE_EQ(share->high.value(), 0.4);
  const std::string text = traces::write_timer_log_text(log);
  EXPECT_NE(text.find("22.0 to 40.0 %"), std::string::npos) << text;
  EXPECT_NE(text.find("no rank need be at either end"), std::string::npos) << text;
  EXPECT_NE(text.find("no timeline"), std::string::npos) << text;
  EXPECT_NE(text.find("synchronize the device"), std::string::npos) << text;
}

// Megatron-LM's timers of levels 0 and 1 do not synchronize ops.
TEST(TimerLog, SaysThatOpsWereSynchronizedWhereTheyWere) {
  for (const char* const timer : {"forward-backward", "optimizer", "save-checkpoint"}) {
    const std::string text = traces::write_timer_log_text(traces::read_timer_log(
        std::string("(min, max) time across ranks (ms):\n    ") + timer + " ....: (1.00, 2.00)\n",
        "train.log"));
    EXPECT_EQ(text.find("synchronize"), std::string::npos) << text;
    EXPECT_NE(text.find("--timing-log-level 2 prints them"), std::string::npos) << text;
  }
}

TEST(TimerLog, IterationsMayBeInSeconds) {
  const traces::TimerLog log = traces::read_timer_log(
      " iteration 10/ 100 | elapsed time per iteration (s): 1.25 | learning rate: 1.0E-04 |\n"
      "(min, max) time across ranks (ms):\n    optimizer ....: (30.00, 31.00)\n",
      "train.log");
  EXPECT_EQ(log.iteration_ms, 1250);
}

TEST(TimerLog, TimersWithoutTheLineBeforeThemAreALogThatLacksIt) {
  const std::string text = "    forward-compute ......: (200.00, 260.00)\n";
  EXPECT_FALSE(traces::is_timer_log(text));
  EXPECT_TRUE(traces::is_training_log(text));
  EXPECT_TRUE(traces::lacks_timer_header(text));
  EXPECT_FALSE(traces::lacks_timer_header(kMegatron));
  EXPECT_FALSE(traces::lacks_timer_header("[{\"name\":\"a ....: (1, 2)\"}]"));
}

TEST(TimerLog, NamesRanksWhereTheLogDoes) {
  const traces::TimerLog log = traces::read_timer_log(
      "elapsed time per iteration (ms): 500.0 |\n"
      "times across ranks (ms):\n  forward-compute:\n     rank  0: 100.00\n     rank  1: 150.00\n"
      "  backward-compute:\n     rank  0: 200.00\n     rank  1: 300.00\n",
      "train.log");
  EXPECT_EQ(log.find("backward-compute")->by_rank.at(1), 300);
  const std::string text = traces::write_timer_log_text(log);
  EXPECT_NE(text.find("rank 1: computes 450.0 ms, 90.0 % of an iteration"), std::string::npos)
      << text;
}

// Rank 0 computes 200 + 500 of 1000 ms and rank 1 300 + 400: each spends 300 outside.
TEST(TimerLog, AddsUpEveryRankWhereTheLogHasThem) {
  const traces::TimerLog log = traces::read_timer_log(
      "elapsed time per iteration (ms): 1000.0 |\n"
      "times across ranks (ms):\n  forward-compute:\n     rank  0: 200.00\n     rank  1: 300.00\n"
      "  backward-compute:\n     rank  0: 500.00\n     rank  1: 400.00\n",
      "train.log");
  const auto share = log.outside;
  ASSERT_TRUE(share);
  EXPECT_DOUBLE_EQ(share->low, 0.3);
  EXPECT_DOUBLE_EQ(share->high.value(), 0.3);
}

TEST(TimerLog, TakesMediansOfReports) {
  std::string text;
  for (const char* time : {"9000.00", "10.00", "11.00", "12.00", "10.50"})
    text += std::string("max time across ranks (ms):\n    forward-compute ....: ") + time + "\n";
  const traces::TimerLog log = traces::read_timer_log(text, "train.log");
  EXPECT_EQ(log.reports, 5u);
  EXPECT_EQ(log.timers[0].max_ms, 11);
  EXPECT_FALSE(log.timers[0].min_ms);  // the log has none
  EXPECT_NE(traces::write_timer_log_json(log).find(R"("min_ms":null)"), std::string::npos);
  EXPECT_NE(traces::write_timer_log_csv(log).find("\"forward-compute\",,11\n"), std::string::npos);
  EXPECT_FALSE(log.outside);
}

std::string longest_alone(const std::string& forward, const std::string& backward) {
  return "elapsed time per iteration (ms): 1000.0 |\nmax time across ranks (ms):\n"
         "    forward-compute ....: " +
         forward + "\n    backward-compute ....: " + backward + "\n";
}

// No rank computes longer than 260 + 520 of 1000 ms; nothing says how much less the others do.
TEST(TimerLog, TheLongestTimesBoundTheShareFromBelowAlone) {
  const traces::TimerLog log =
      traces::read_timer_log(longest_alone("260.00", "520.00"), "train.log");
  ASSERT_TRUE(log.outside);
  EXPECT_DOUBLE_EQ(log.outside->low, 0.22);
  EXPECT_FALSE(log.outside->high);
  const std::string text = traces::write_timer_log_text(log);
  EXPECT_NE(text.find("Every rank spends at least 22.0 % of an iteration"), std::string::npos);
  EXPECT_NE(text.find("How much others spend is not in the log"), std::string::npos) << text;
  EXPECT_NE(text.find("may be of different ranks"), std::string::npos) << text;
  EXPECT_EQ(text.find("100.0 %"), std::string::npos) << text;
  const std::string json = traces::write_timer_log_json(log);
  EXPECT_NE(json.find(R"("high":null)"), std::string::npos) << json;
  EXPECT_NE(json.find(R"("highest":null)"), std::string::npos) << json;
}

// 500 + 600 ms are more than an iteration of 1000: they are of different ranks, and bound nothing.
TEST(TimerLog, TheLongestTimesOfDifferentRanksTellNoShare) {
  const std::string text = traces::write_timer_log_text(
      traces::read_timer_log(longest_alone("500.00", "600.00"), "train.log"));
  EXPECT_NE(text.find("it does not tell what share of an iteration"), std::string::npos) << text;
  EXPECT_EQ(text.find("Every rank spends"), std::string::npos) << text;
}

// A report without the shortest times leaves open how much ranks spend at most.
TEST(TimerLog, OneReportWithTheLongestTimesAloneLeavesTheLargestShareOpen) {
  const traces::TimerLog log =
      traces::read_timer_log(kMegatron + longest_alone("260.00", "520.00"), "train.log");
  ASSERT_TRUE(log.outside);
  EXPECT_EQ(log.outside->reports, 2u);
  EXPECT_FALSE(log.outside->high);
}

// As in all reports, the median of an even number of values is the lower of the middle two.
TEST(TimerLog, TakesTheLowerOfTwoMiddleReports) {
  const traces::TimerLog log = traces::read_timer_log(
      "elapsed time per iteration (ms): 1000.0 |\nmax time across ranks (ms):\n  optimizer: 50.0\n"
      "elapsed time per iteration (ms): 1010.0 |\nmax time across ranks (ms):\n  optimizer: 60.0\n",
      "train.log");
  EXPECT_EQ(log.iteration_ms, 1000);
  EXPECT_EQ(log.timers[0].max_ms, 50);
  const std::string text = traces::write_timer_log_text(log);
  EXPECT_NE(text.find("medians of 2 reports\n"), std::string::npos) << text;
}

TEST(TimerLog, SaysThatAMinimumIsOverItsMaximum) {
  EXPECT_EQ(error_of([&] {
              traces::read_timer_log(
                  "(min, max) time across ranks (ms):\n  optimizer ..: (3.00, 1.00)\n",
                  "train.log");
            }),
            "train.log:2: '(3.00, 1.00)' has a minimum over its maximum; correct or remove the "
            "line");
}

TEST(TimerLog, ReadsLinesThatALauncherNumbers) {
  for (const std::string prefix : {"[default7]:", "12: "}) {
    std::string text;
    for (const char* line :
         {"elapsed time per iteration (ms): 500.0 |", "(min, max) time across ranks (ms):",
          "    forward-compute ....: (10.00, 20.00)", "    backward-compute ...: (30.00, 40.00)"})
      text += prefix + line + "\n";
    const traces::TimerLog log = traces::read_timer_log(text, "train.log");
    ASSERT_NE(log.find("backward-compute"), nullptr) << prefix;
    EXPECT_EQ(log.find("backward-compute")->max_ms, 40);
    EXPECT_EQ(log.iteration_ms, 500);
  }
}

TEST(TimerLog, ReadsDeepSpeedsBreakdown) {
  const traces::TimerLog log = traces::read_timer_log(
      "[2024-04-21 02:45:24,652] [INFO] [logging.py:96:log_dist] [Rank 0] time (ms) | fwd: 3859.30 "
      "| bwd: 11267.97 | step: 829.19\n",
      "ds.log");
  EXPECT_TRUE(log.is_deepspeed);
  EXPECT_EQ(log.find("bwd")->max_ms, 11267.97);
  EXPECT_NE(traces::write_timer_log_text(log).find("mostly rank 0"), std::string::npos);
}

TEST(TimerLog, ReadsDeepSpeedsIterations) {
  const std::string timers = "[Rank 0] time (ms) | fwd: 300.00 | train_batch: 1600.00\n";
  EXPECT_EQ(traces::read_timer_log(
                "steps: 10 loss: 3.1 iter time (s): 1.500 samples/sec: 85.3\n" + timers, "ds.log")
                .iteration_ms,
            1500);
  EXPECT_EQ(traces::read_timer_log(timers, "ds.log").iteration_ms, 1600);
  EXPECT_FALSE(
      traces::read_timer_log("[Rank 0] time (ms) | fwd: 300.00 | train_batch: 0.00\n", "ds.log")
          .iteration_ms);
}

TEST(TimerLog, ReadsANegativeZeroAsZero) {
  const traces::TimerLog log =
      traces::read_timer_log("[Rank 0] time (ms) | fwd: -0 | bwd: 3.00\n", "ds.log");
  EXPECT_FALSE(std::signbit(log.find("fwd")->max_ms));
}

TEST(TimerLog, RefusesWhatIsNoTime) {
  for (const char* value :
       {"(abc, 1.00)", "(-1.00, 1.00)", "(3.00, 1.00)", "(nan, 1.00)", "(1.00, 9e18)"})
    EXPECT_TRUE(fails_with(
        [&] {
          traces::read_timer_log(
              "(min, max) time across ranks (ms):\n    forward-compute ...: " + std::string(value),
              "train.log");
        },
        fmt::format("train.log:2: '{}' ", value)))
        << value;
}

TEST(TimerLog, IsNotSeenInTraces) {
  EXPECT_TRUE(traces::is_timer_log(kMegatron));
  EXPECT_FALSE(traces::is_timer_log(R"({"traceEvents":[{"name":"time (ms) |"}]})"));
  EXPECT_FALSE(traces::is_timer_log("iteration 10 | loss 3.2"));
}

}  // namespace
}  // namespace bubblescope::tests

// Logs of timers in which a number cannot be read, and those of several runs.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "sim/ir/error.h"
#include "tests/support/error_text.h"
#include "traces/measured/timer_log.h"

namespace bubblescope::tests {
namespace {

using traces::read_timer_log;
using traces::TimerLog;

/// One line.
std::string iteration(int number, const std::string& ms) {
  return "iteration " + std::to_string(number) + "/ 100 | elapsed time per iteration (ms): " + ms +
         " | x |\n";
}

/// One report in three lines: ranks compute 600 to 780 ms.
std::string ranges(const std::string& backward = "(400.00, 520.00)") {
  return "(min, max) time across ranks (ms):\n  forward-compute ....: (200.00, 260.00)\n"
         "  backward-compute ...: " +
         backward + "\n";
}

/// One report in two lines.
std::string largest(const std::string& ms) {
  return "max time across ranks (ms):\n  optimizer ....: " + ms + "\n";
}

using Sentences = std::vector<std::string>;

// Line 4 of 8 cannot be read, so that the second report alone counts.
TEST(TimerLogRuns, AReportWithAnUnreadableNumberIsLeftOut) {
  for (const std::string value :
       {"(nan, 520.00)", "(1,400.0, 1,520.0)", "(400.00, -1.00)", "(3.00, 1.00)", "(x, 1.00)"}) {
    const TimerLog log = read_timer_log(
        iteration(1, "1000.0") + ranges(value) + iteration(2, "1000.0") + ranges(), "a.log");
    EXPECT_EQ(log.reports, 1u) << value;
    EXPECT_EQ(log.unfit_reports, 0u) << value;
    ASSERT_TRUE(log.outside) << value;
    EXPECT_DOUBLE_EQ(log.outside->low, 0.22);
    ASSERT_EQ(log.unread.size(), 1u) << value;
    EXPECT_EQ(log.unread[0].line, 4u);
    EXPECT_TRUE(log.unread[0].what.starts_with("'" + value + "' ")) << log.unread[0].what;
    EXPECT_EQ(describe_left_out(log),
              Sentences{"left out: the report in line 4: " + log.unread[0].what});
    EXPECT_TRUE(write_timer_log_text(log).starts_with("left out: the report in line 4: '("))
        << write_timer_log_text(log);
    EXPECT_NE(write_timer_log_json(log).find(R"("left_out":["left out: the report in line 4)"),
              std::string::npos);
  }
}

TEST(TimerLogRuns, NumbersOfAllKindsOfReportsAreNamed) {
  const std::string lists = "times across ranks (ms):\n  optimizer:\n     rank  0: ";
  const std::string line = "[Rank 0] time (ms) | fwd: ";
  for (const std::string value : {"1,700.5", "nan", "1.700,5"})
    for (const std::string& text :
         {largest("50.00") + largest(value), lists + "50.00\n" + lists + value + "\n",
          line + "50.00 | bwd: 60.00\n" + line + value + " | bwd: 60.00\n",
          line + "50.00 | bwd: 60.00\n" + line + "50.00 | bwd: " + value + "\n"}) {
      const TimerLog log = read_timer_log(text, "a.log");
      EXPECT_EQ(log.reports, 1u) << text;
      ASSERT_EQ(log.unread.size(), 1u) << text;
      EXPECT_EQ(log.unread[0].what, "'" + value + "' is not a time in milliseconds");
      EXPECT_EQ(log.timers.at(0).max_ms, log.timers.at(0).name == "bwd" ? 60 : 50) << text;
    }
}

// The report itself can be read, but has no iteration to be a share of.
TEST(TimerLogRuns, AnUnreadableIterationIsLeftOutAlone) {
  const TimerLog log =
      read_timer_log(iteration(1, "nan") + ranges() + iteration(2, "1000.0") + ranges(), "a.log");
  EXPECT_EQ(log.reports, 2u);
  EXPECT_EQ(log.iteration_ms, 1000);
  EXPECT_EQ(log.outside->reports, 1u);
  EXPECT_EQ(describe_left_out(log),
            Sentences{"left out: the time of the iteration in line 1: 'nan' "
                      "is not a time in milliseconds"});
}

// A value that is no number at all is one of a timer only behind its dots.
TEST(TimerLogRuns, WordsAreNamedBehindATimersName) {
  const TimerLog named = read_timer_log(largest("50.00") + largest("OOM"), "a.log");
  ASSERT_EQ(named.unread.size(), 1u);
  EXPECT_EQ(named.unread[0].what, "'OOM' is not a time in milliseconds");
  const TimerLog foreign =
      read_timer_log(largest("50.00") + "Loading.... finished: well\n", "a.log");
  EXPECT_TRUE(foreign.unread.empty());
  EXPECT_EQ(foreign.reports, 1u);
}

TEST(TimerLogRuns, ManyUnreadableNumbersAreCounted) {
  std::string text = largest("50.00");
  for (int more = 0; more < 5; ++more) text += largest("nan");
  const Sentences left_out = describe_left_out(read_timer_log(text, "a.log"));
  ASSERT_EQ(left_out.size(), 4u);
  EXPECT_EQ(left_out.back(),
            "2 further lines have numbers that cannot be read; what they belong to is left out");
  text = largest("50.00");
  for (int more = 0; more < 4; ++more) text += largest("nan");
  EXPECT_EQ(describe_left_out(read_timer_log(text, "a.log")).back(),
            "1 further line has a number that cannot be read; what it belongs to is left out");
}

TEST(TimerLogRuns, ALogWithoutAnyNumberIsRefusedWithTheFirst) {
  EXPECT_EQ(error_of([&] { read_timer_log(largest("1,700.5"), "a.log"); }),
            "a.log:2: '1,700.5' is not a time in milliseconds; correct or remove the line");
}

// The first run took 1000 ms per iteration; the second one, from line 6 on, takes 2000.
TEST(TimerLogRuns, TheLastOfSeveralRunsIsReported) {
  const std::string first = iteration(20, "1000.0") + ranges();
  const TimerLog log =
      read_timer_log(first + "restarted\n" + iteration(10, "2000.0") + ranges(), "a.log");
  EXPECT_EQ(log.runs, 2u);
  EXPECT_EQ(log.run, 2u);
  EXPECT_EQ(log.reports, 1u);
  EXPECT_EQ(log.iteration_ms, 2000);
  EXPECT_TRUE(write_timer_log_text(log).starts_with(
      "the log has 2 runs one after another: in line 6 iterations begin again, at 10; this is run "
      "2, the last one; give the lines of another one as a log of its own\n"))
      << write_timer_log_text(log);
  EXPECT_EQ(read_timer_log(first + iteration(20, "1000.0") + ranges(), "a.log").runs, 1u);
  EXPECT_EQ(read_timer_log(first + iteration(21, "1000.0") + ranges(), "a.log").runs, 1u);
}

// A run that has just begun has printed no timers yet.
TEST(TimerLogRuns, ARunWithoutTimersLeavesTheOneBefore) {
  const TimerLog log =
      read_timer_log(iteration(20, "1000.0") + ranges() + iteration(10, "2000.0"), "a.log");
  EXPECT_EQ(log.run, 1u);
  EXPECT_EQ(log.iteration_ms, 1000);
  EXPECT_NE(describe_left_out(log).at(0).find("this is run 1, the last one with timers"),
            std::string::npos);
}

// DeepSpeed counts steps, and other lines may count anew for every epoch or evaluation.
TEST(TimerLogRuns, OnlyLinesWithTheTimeOfAnIterationCount) {
  const auto steps = [](int number) {
    return "steps: " + std::to_string(number) +
           " loss: 3.1 iter time (s): 1.500 samples/sec: 85.3\n[Rank 0] time (ms) | fwd: 3.00\n";
  };
  EXPECT_EQ(read_timer_log(steps(20) + steps(10), "ds.log").runs, 2u);
  EXPECT_EQ(read_timer_log(iteration(20, "1000.0") + ranges() + "Validation: iteration 1/50\n" +
                               iteration(30, "1000.0") + ranges(),
                           "a.log")
                .runs,
            1u);
}

}  // namespace
}  // namespace bubblescope::tests

// Logs as their writers, launchers and other processes leave them.
#include <gtest/gtest.h>

#include <cstddef>
#include <string>
#include <vector>

#include "sim/ir/error.h"
#include "tests/support/error_text.h"
#include "traces/measured/timer_log.h"

namespace bubblescope::tests {
namespace {

using traces::read_timer_log;
using traces::read_timer_logs;
using traces::TimerLog;

std::string iteration(const std::string& ms) {
  return " [2025-03-02 10:11:12] iteration 10/ 100 | elapsed time per iteration (ms): " + ms +
         " | x |\n";
}

/// A report as Megatron-LM prints it: a rank computes 600 to 780 ms.
std::string ranges(const std::string& before = "", const std::string& within = "") {
  return before + "(min, max) time across ranks (ms):\n" + before +
         "    forward-backward ...............................: (940.00, 941.00)\n" + within +
         before + "    forward-compute ................................: (200.00, 260.00)\n" +
         before + "    backward-compute ...............................: (400.00, 520.00)\n";
}

/// The lines with something before each.
std::string mark_lines(const std::string& text, const std::string& mark) {
  std::string marked;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = text.find('\n', at) + 1;
    marked += mark + text.substr(at, end - at);
    at = end;
  }
  return marked;
}

/// A report on every rank, where rank r computes (r + 1) x 100 ms forward and twice that backward.
std::string rank_lists(int ranks, const std::string& within = "") {
  std::string text = "times across ranks (ms):\n";
  for (const int factor : {1, 2}) {
    text += factor == 1 ? "  forward-compute:\n" : "  backward-compute:\n";
    for (int rank = 0; rank < ranks; ++rank) {
      if (factor == 2 && rank == 1) text += within;
      text += "     rank  " + std::to_string(rank) + ": " +
              std::to_string(factor * (rank + 1) * 100) + ".00\n";
    }
  }
  return text;
}

void expect_share(const TimerLog& log, double low, double high) {
  const auto share = log.outside;
  ASSERT_TRUE(share) << log.file;
  EXPECT_DOUBLE_EQ(share->low, low);
  EXPECT_DOUBLE_EQ(share->high.value(), high);
}

bool says(const TimerLog& log, const std::string& words) {
  return write_timer_log_text(log).find(words) != std::string::npos;
}

// Until 2022 Megatron-LM printed the timers of one rank, of which nothing follows for the others.
TEST(TimerLogWriters, OneRankIsNotEveryRank) {
  const TimerLog log = read_timer_log(
      iteration("430.0") + "time (ms) | forward-compute: 53.79 | backward-compute: 138.84\n",
      "a.log");
  EXPECT_TRUE(log.is_megatron);
  EXPECT_FALSE(log.is_deepspeed);
  EXPECT_FALSE(log.outside);
  EXPECT_FALSE(log.find("forward-compute")->is_of_all_ranks);
  EXPECT_TRUE(says(log, "the times that Megatron-LM prints"));
  EXPECT_TRUE(says(log, "the rank that printed them, which the log does not name"));
  EXPECT_FALSE(says(log, "Every rank"));
  const std::string json = write_timer_log_json(log);
  EXPECT_NE(json.find(R"("source":"megatron")"), std::string::npos) << json;
  EXPECT_NE(json.find(R"("outside_compute":null)"), std::string::npos) << json;
}

TEST(TimerLogWriters, ALauncherNamesThePrintingRank) {
  const TimerLog log = read_timer_log(
      mark_lines(iteration("430.0") + "time (ms) | forward-compute: 50.0 | optimizer: 9.0\n",
                 "3: ") +
          "0: [Rank 0] (after 100 iterations) memory (MB) | allocated: 2793.5\n",
      "a.log");
  EXPECT_EQ(log.iteration_ms, 430);
  EXPECT_TRUE(says(log, "here that whose lines begin with '3:'"));
}

// Megatron-LM of 2019 had other names, with blanks.
TEST(TimerLogWriters, LinesWithoutARankAreMegatrons) {
  const TimerLog log =
      read_timer_log("time (ms) | forward: 10.0 | batch generator: 2.0\n", "a.log");
  EXPECT_TRUE(log.is_megatron);
  EXPECT_TRUE(read_timer_log("time (ms) | fwd: 10.0 | bwd: 2.0\n", "a.log").is_deepspeed);
  EXPECT_TRUE(read_timer_log("[Rank 0] time (ms) | forward: 10.0\n", "a.log").is_deepspeed);
}

// Ranks 0 to 3 compute 300 to 1200 of 2000 ms, wherever another process prints.
TEST(TimerLogWriters, ForeignLinesDoNotEndAReport) {
  for (const std::string foreign :
       {"", "/usr/lib/x.py:77: UserWarning: something\n  warnings.warn(\n",
        "[W303 socket.cpp:464] warning: something happened\n", "[rank2]: \n", "\n"})
    expect_share(read_timer_log(iteration("2000.0") + rank_lists(4, foreign), foreign), 0.4, 0.85);
  for (const std::string foreign : {"[W303 socket.cpp:464] warning: happened\n", "shape: (2, 3)\n",
                                    "/usr/lib/x.py:12: UserWarning: lalala\n"}) {
    const TimerLog log = read_timer_log(iteration("1000.0") + ranges("", foreign), foreign);
    EXPECT_EQ(log.timers.size(), 3u) << foreign;
    expect_share(log, 0.22, 0.4);
  }
}

// After a foreign line, a number is a timer only where it has Megatron-LM's dots.
TEST(TimerLogWriters, NumbersOfForeignLinesAreNoTimers) {
  const TimerLog log = read_timer_log(
      "max time across ranks (ms):\n    optimizer ....: 30.00\nnow something else\nstep: 12\n"
      "    forward-compute ....: 40.00\n",
      "a.log");
  EXPECT_EQ(log.timers.size(), 2u);
  EXPECT_EQ(log.find("step"), nullptr);
}

TEST(TimerLogWriters, ReportsWithUnequalRanksHaveNoShare) {
  const std::string whole = iteration("2000.0") + rank_lists(4);
  for (const std::string lost : {"     rank  3: 800.00\n", "     rank  0: 100.00\n"}) {
    std::string cut = whole;
    cut.erase(cut.find(lost), lost.size());
    const TimerLog log = read_timer_log(cut, "cut.log");
    EXPECT_FALSE(log.outside) << lost;
    EXPECT_EQ(log.unfit_reports, 1u) << lost;
    EXPECT_TRUE(says(log, "1 report without a share"));
    // The whole report keeps its own.
    expect_share(read_timer_log(whole + cut, "both.log"), 0.4, 0.85);
  }
  // A lost name leaves ranks that begin anew.
  std::string cut = whole;
  cut.erase(cut.find("  backward-compute:\n"), 20);
  EXPECT_EQ(read_timer_log(cut, "cut.log").unfit_reports, 1u);
}

// Each loses a piece of the log such that other times seem to belong to the iteration.
TEST(TimerLogWriters, CutLogsHaveNoShareOfOtherTimes) {
  const std::string header = "(min, max) time across ranks (ms):\n";
  const std::string forward = "    forward-compute ....: (200.00, 260.00)\n";
  const std::string backward = "    backward-compute ....: (400.00, 520.00)\n";
  const std::string lists = rank_lists(2);
  for (const std::string& text : {
           iteration("1000.0") + header + header + forward + backward,
           iteration("1000.0") + header + forward + forward + backward,
           iteration("1000.0") + header + "    optimizer ....\n" + forward + backward,
           iteration("1000.0") + header + "    optimizer ....: (1.00, 2\n" + forward + backward,
           iteration("1000.0") + "iteration 20/ 100 | elapsed time p\n" + header + forward +
               backward,
           "iteration 20/ 100 | elapsed time per iteration (ms): 10\n" + header + forward +
               backward,
           iteration("500.0") + header + forward + backward,  // backwards take 520 ms
           iteration("1000.0") + lists.substr(0, lists.size() - 2),
       })
    EXPECT_FALSE(read_timer_log(text, "cut.log").outside) << text;
}

TEST(TimerLogWriters, RoundedTimesMayFillTheirIteration) {
  const std::string text = iteration("1000.0") +
                           "(min, max) time across ranks (ms):\n"
                           "    forward-compute ....: (400.20, 400.20)\n"
                           "    backward-compute ....: (600.10, 600.10)\n";
  const TimerLog log = read_timer_log(text, "full.log");
  expect_share(log, 0, 0);
  EXPECT_EQ(log.unfit_reports, 0u);
}

TEST(TimerLogWriters, AFieldThatWasCutIsLeftOut) {
  for (const std::string cut : {" | bwd:", " | bwd: 1795"}) {
    const TimerLog log =
        read_timer_log("[Rank 0] time (ms) | fwd: 6567.66" + cut + "\n", "cut.log");
    EXPECT_NE(log.find("fwd"), nullptr) << cut;
    EXPECT_EQ(log.find("bwd"), nullptr) << cut;
  }
}

// The later iterations, without timers, take four times as long.
TEST(TimerLogWriters, AShareIsOfTheReportsOwnIteration) {
  std::string text = iteration("1000.0") + ranges();
  for (const char* ms : {"1000.0", "4000.0", "4000.0", "4000.0"}) text += iteration(ms);
  const TimerLog log = read_timer_log(text, "restart.log");
  expect_share(log, 0.22, 0.4);
  EXPECT_EQ(log.iteration_ms, 4000);
  EXPECT_TRUE(
      says(log, "The iterations of these timers took 1000.00 ms; the median of all is 4000.00 ms"));
  // A report after another one, or before any iteration, has no iteration of its own.
  text = ranges() + iteration("1000.0") + ranges() + ranges();
  EXPECT_EQ(read_timer_log(text, "a.log").outside->reports, 1u);
}

// Ranks compute 600 to 780 of 1000, 2000 and 3000 ms: 22 to 40, 61 to 70 and 74 to 80 %.
TEST(TimerLogWriters, SharesAreMediansOverReports) {
  const TimerLog log = read_timer_log(iteration("2000.0") + ranges() + iteration("1000.0") +
                                          ranges() + iteration("3000.0") + ranges(),
                                      "a.log");
  expect_share(log, 0.61, 0.7);
  EXPECT_DOUBLE_EQ(log.outside->lowest, 0.22);
  EXPECT_DOUBLE_EQ(log.outside->highest.value(), 0.8);
  EXPECT_TRUE(says(log, "medians of 3 reports; over all of them it is 22.0 to 80.0 %"));
  EXPECT_EQ(read_timer_log(iteration("100.0") + ranges(), "a.log").unfit_reports, 1u);
}

TEST(TimerLogWriters, RanksOfDeepSpeedAreKeptApart) {
  const std::string line = "[2022-08-25 02:58:14,298] [INFO] [logging.py:68:log_dist] ";
  const TimerLog log =
      read_timer_log(line + "[Rank 0] rank=0 time (ms) | forward_microstep: 100.00\n" + line +
                         "[Rank 1] rank=1 time (ms) | forward_microstep: 500.00\n",
                     "ds.log");
  EXPECT_EQ(log.reports, 1u);
  EXPECT_EQ(log.find("forward_microstep")->by_rank.at(0), 100);
  EXPECT_EQ(log.find("forward_microstep")->by_rank.at(1), 500);
  EXPECT_TRUE(says(log, "      rank 0        rank 1\n"));
  EXPECT_TRUE(says(log, "here ranks 0, 1"));
}

// As deepspeed/runtime/pipe/engine.py prints them: it resets timers only every steps_per_print.
TEST(TimerLogWriters, PipelinesOfDeepSpeedSumSteps) {
  const TimerLog log = read_timer_log(
      "steps: 20 loss: 4.6178 iter time (s): 0.994 samples/sec: 257.601\n"
      "[Rank 0] rank=0 time (ms) | batch_input: 209.59 | backward_microstep: 5153.22\n",
      "ds.log");
  EXPECT_TRUE(log.sums_steps);
  EXPECT_TRUE(says(log, "sums over the steps between two prints"));
  EXPECT_TRUE(says(log, "backward_microstep takes longer than one"));
  EXPECT_FALSE(read_timer_log("[Rank 0] time (ms) | fwd: 3.0 | bwd: 5.0\n", "ds.log").sums_steps);
}

TEST(TimerLogWriters, PrefixesOfLaunchersAreRead) {
  const std::string plain = iteration("1000.0") + ranges();
  for (const char* mark :
       {"worker-3: ", "[worker-3]: ", "node01.cluster: ", "2025-03-02T10:11:12.123456789Z ",
        "(TaskRunner pid=3456) ", "\x1b[36m(MegatronWorker pid=12345, ip=10.0.0.7)\x1b[0m ",
        "[default7]:[2025-03-02 10:11:12,123] INFO ", "15: ", "\x1b[32m"}) {
    const TimerLog log = read_timer_log(mark_lines(plain, mark), mark);
    EXPECT_EQ(log.timers.size(), 3u) << mark;
    expect_share(log, 0.22, 0.4);
    expect_share(read_timer_log(mark_lines(iteration("2000.0") + rank_lists(4), mark), mark), 0.4,
                 0.85);
  }
  std::string returns = plain;
  for (char& letter : returns)
    if (letter == '\n') letter = '\r';
  expect_share(read_timer_log(returns, "cr.log"), 0.22, 0.4);
  expect_share(read_timer_log("\xEF\xBB\xBF" + plain, "bom.log"), 0.22, 0.4);
}

TEST(TimerLogWriters, ATimerMayStandBesideTheHeader) {
  const TimerLog log = read_timer_log(
      iteration("1000.0") +
          "(min, max) time across ranks (ms): forward-compute ....: (200.00, 260.00)\n"
          "    backward-compute ....: (400.00, 520.00) [repeated 2x across cluster]\n",
      "joined.log");
  expect_share(log, 0.22, 0.4);
}

// Two jobs in one log, line by line: 600 to 780 of 1000 and of 2000 ms.
TEST(TimerLogWriters, TwoWritersAreNotMixed) {
  const std::string first = mark_lines(iteration("1000.0") + ranges(), "worker-1: ");
  const std::string second = mark_lines(iteration("2000.0") + ranges(), "worker-2: ");
  std::string text;
  for (std::size_t at = 0, other = 0; at < first.size();) {
    const std::size_t end = first.find('\n', at) + 1;
    const std::size_t other_end = second.find('\n', other) + 1;
    text += first.substr(at, end - at) + second.substr(other, other_end - other);
    at = end;
    other = other_end;
  }
  const std::vector<TimerLog> logs = read_timer_logs(text, "two.log");
  ASSERT_EQ(logs.size(), 2u);
  EXPECT_EQ(logs[0].writer, "worker-1:");
  expect_share(logs[0], 0.22, 0.4);
  expect_share(logs[1], 0.61, 0.7);
  EXPECT_EQ(error_of([&] { read_timer_log(text, "two.log"); }),
            "two.log has the timers of 2 writers, whose lines begin with 'worker-1:', "
            "'worker-2:'; give the lines of each as a log of its own");
}

// The second writer has nothing but the time of an iteration, in line 5, after a report of the
// first one with a number that cannot be read either, in line 7.
TEST(TimerLogWriters, AWriterWithoutTimersIsNotReported) {
  const auto largest = [](const std::string& ms) {
    return mark_lines("max time across ranks (ms):\n    optimizer ....: " + ms + "\n",
                      "worker-1: ");
  };
  const std::string text = largest("30.00") + largest("40.00") +
                           mark_lines(iteration("nan"), "worker-2: ") + largest("x,y");
  const TimerLog log = read_timer_log(text, "two.log");
  EXPECT_EQ(log.writer, "worker-1:");
  EXPECT_EQ(log.reports, 2u);
  ASSERT_EQ(log.unread.size(), 2u);
  EXPECT_EQ(log.unread[0].line, 5u);
  EXPECT_TRUE(log.unread[0].is_iteration);
  EXPECT_EQ(log.unread[1].line, 7u);
}

// Megatron-DeepSpeed prints both kinds of timers, and writes the time with underscores.
TEST(TimerLogWriters, BothKindsOfTimersStandSideBySide) {
  const TimerLog log = read_timer_log(
      "[2024-06-21 10:50:42,168] [INFO] [logging.py:96:log_dist] [Rank 0] time (ms) | fwd: 253.72\n"
      "[2024-06-21 10:50:42][INFO][training:1609] -  iteration=  1/  317892 | "
      "elapsed_time_per_iteration_ms=1088.2 | lm loss=11.1\n" +
          ranges(),
      "argonne.log");
  EXPECT_EQ(log.iteration_ms, 1088.2);
  EXPECT_EQ(log.find("forward-compute")->min_ms, 200);
  EXPECT_FALSE(log.find("fwd")->is_of_all_ranks);
  ASSERT_TRUE(log.outside);
  EXPECT_TRUE(says(log, "the times that Megatron-LM and DeepSpeed print"));
  EXPECT_TRUE(says(log, "    200.00 ms     260.00 ms\n"));
  EXPECT_TRUE(says(log, "DeepSpeed's times are those of the rank that printed them, here rank 0"));
  EXPECT_NE(write_timer_log_json(log).find(R"("source":"megatron-deepspeed")"), std::string::npos);
}

TEST(TimerLogWriters, LogsWithoutTimersAreLogsStill) {
  for (const char* text :
       {"[rank0]:[titan] 2024-10-11 10:11:12,345 - root - INFO - step: 10  loss:  7.4567",
        "[NeMo I 2025-03-02 10:11:12 megatron:12] Training epoch 0, iteration 3/999",
        " [2025-11-04 20:13:03] iteration 20/ 100 | elapsed time per iteration (ms): 5312.4 |",
        "using world size: 8\niteration 20/ 100 | elapsed time per iteration (ms): 5312.4 |"}) {
    EXPECT_TRUE(traces::is_training_log(text)) << text;
    EXPECT_FALSE(traces::is_timer_log(text)) << text;
  }
  for (const char* text : {"", "[]", "[{\"ph\":\"X\"}]", "[ 1, 2.5 ]", "{\"iter time (s):\":1}",
                           "rank,lane,op\n", "Apache License"})
    EXPECT_FALSE(traces::is_training_log(text)) << text;
}

}  // namespace
}  // namespace bubblescope::tests

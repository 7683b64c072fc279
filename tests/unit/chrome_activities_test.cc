// Tests slices of Chrome traces that are not ops: work around ops, and work between them.
#include "traces/measured/chrome_activities.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/chrome_text.h"
#include "tests/support/find_text.h"
#include "traces/files/trace_format.h"
#include "traces/measured/assemble_steps.h"
#include "traces/measured/name_rules.h"

namespace bubblescope::tests {
namespace {

using Parts = std::vector<std::pair<std::string, Nanos>>;

std::string text(int number) { return std::to_string(number); }

/// The arguments of an op of one micro-batch; without a step where it is negative.
std::string op_args(int step) {
  return R"("mb_id":0)" + (step < 0 ? "" : R"(,"step":)" + text(step));
}

/// Adds the ops of two ranks in a step, a process each: F takes 10 us and B 20 us, so that the
/// pipeline takes 60 us, and rank 0 waits from 10 to 40.
void add_ops(Events& events, int origin, int step = -1) {
  for (int rank = 0; rank < 2; ++rank)
    events.slice("forward", rank, 0, origin + 10 * rank, 10, op_args(step))
        .slice("backward", rank, 0, origin + 40 - 20 * rank, 20, op_args(step));
}

/// Steps at 1000 us, 2000 us and so on.
Events run_steps(int steps) {
  Events events;
  for (int step = 1; step <= steps; ++step) add_ops(events, 1000 * step);
  return events;
}

traces::AssembledSteps read(const Events& events, const std::string& rules = "") {
  const traces::NameRules parsed =
      rules.empty() ? traces::NameRules() : traces::NameRules::parse(rules, "rules.json");
  return traces::assemble_steps(traces::parse_trace({"t.json", events.list(), &parsed}));
}

void expect_optimizer(const traces::AssembledSteps& read, std::size_t steps) {
  ASSERT_EQ(read.whole_steps.size(), steps);
  for (const traces::WholeStep& step : read.whole_steps) {
    EXPECT_EQ(step.whole, 82'000);
    EXPECT_EQ(step.pipeline, 60'000);
    EXPECT_EQ(step.outside, (Parts{{"optimizer", 20'000}}));
  }
}

// The optimizer of rank 0 lasts from 62 to 82 us after the start of its step.
TEST(ChromeActivities, AfterOpsAreOfTheirStep) {
  for (const bool states_steps : {true, false})
    for (const int thread : {0, 7}) {
      Events events;
      for (const int step : {3, 4}) {
        const int stated = states_steps ? step : -1;
        add_ops(events, 1000 * step, stated);
        for (int rank = 0; rank < 2; ++rank)
          events.slice("optimizer", rank, thread, 1000 * step + 62 - 20 * rank, 20,
                       states_steps ? "\"step\":" + text(step) : "");
      }
      expect_optimizer(read(events), 2);
    }
}

// All ranks are threads of one process, so that only the arguments say whose the optimizer is.
TEST(ChromeActivities, AreOfTheRankThatTheirArgumentsState) {
  Events events;
  for (int rank = 0; rank < 2; ++rank) {
    const std::string place = R"("step":5,"pp":)" + text(rank);
    events.slice("forward", 0, rank, 10 * rank, 10, place + R"(,"mb_id":0)")
        .slice("backward", 0, rank, 40 - 20 * rank, 20, place + R"(,"mb_id":0)")
        .slice("optimizer", 0, 9, 62 - 20 * rank, 20, place);
  }
  expect_optimizer(read(events), 1);
}

TEST(ChromeActivities, OfNoKnownRankAreAReservation) {
  Events events;
  for (int rank = 0; rank < 2; ++rank)
    events.slice("forward", 0, rank, 10 * rank, 10, op_args(1))
        .slice("backward", 0, rank, 40 - 20 * rank, 20, op_args(1))
        .slice("optimizer", 0, 9, 62, 20);
  EXPECT_TRUE(mentions(read(events).remarks.doubts, "nothing says of which rank its slices are"));
}

TEST(ChromeActivities, OfAProcessWithoutOpsAreAReservation) {
  const auto doubts_with = [](const std::string& name) {
    Events events = run_steps(2);
    for (const int origin : {1000, 2000}) events.slice(name, 77, 0, origin + 62, 20);
    return read(events).remarks.doubts;
  };
  const std::string part = "nothing says of which rank its slices are";
  EXPECT_TRUE(mentions(doubts_with("optimizer"), part));
  EXPECT_FALSE(mentions(doubts_with("refresh"), part));
}

TEST(ChromeActivities, MayBeginAndEndByTwoEvents) {
  const auto bound = [](const char* phase, int at) {
    return std::string(R"({"ph":")") + phase + R"(","name":"optimizer","pid":0,"tid":0,"ts":)" +
           text(at) + "}";
  };
  const std::string list = run_steps(1).list();
  const std::string both =
      list.substr(0, list.size() - 1) + "," + bound("B", 1062) + "," + bound("E", 1082) + "]";
  expect_optimizer(traces::assemble_steps(traces::parse_trace({"t.json", both})), 1);
}

// A slice around the ops is no work of its own, and neither is one within another.
TEST(ChromeActivities, AroundOpsOrWithinOthersDoNotCount) {
  Events events = run_steps(2);
  for (const int origin : {1000, 2000})
    events.slice("train 3 batches", 0, 0, origin - 5, 95)
        .slice("optimizer", 0, 0, origin + 62, 20)
        .slice("adam", 0, 0, origin + 63, 10);
  const traces::AssembledSteps steps = read(events);
  expect_optimizer(steps, 2);
  EXPECT_TRUE(steps.remarks.faults.empty()) << steps.remarks.faults.front();
}

// The optimizer of rank 0 ends 82 us after the start of its step. These lengths are in us.
TEST(ChromeActivities, AroundAllOpsOfAStepAreStepsByTheirName) {
  const auto whole_with = [](const std::string& name, int duration) {
    Events events = run_steps(2);
    for (const int origin : {1000, 2000})
      events.slice(name, 0, 5, origin, duration).slice("optimizer", 0, 0, origin + 62, 20);
    const traces::AssembledSteps steps = read(events);
    EXPECT_FALSE(mentions(steps.remarks.doubts, "holds all ops of a step")) << name;
    return steps.whole_steps.at(1).whole / 1000;
  };
  for (const char* name : {"train_step", "step", "iteration 12", "ProfilerStep#3"})
    EXPECT_EQ(whole_with(name, 95), 95) << name;
  EXPECT_EQ(whole_with("step 3", 70), 82);    // the optimizer ends behind it
  EXPECT_EQ(whole_with("step 3", 1500), 82);  // with ops of the next step
  EXPECT_EQ(whole_with("work", 82), 82);
}

TEST(ChromeActivities, AroundAllOpsOfAStepOfAnotherNameAreAReservation) {
  const auto says_longer = [](int steps, int duration) {
    Events events = run_steps(steps);
    for (int step = 1; step <= steps; ++step)
      events.slice("work", 0, 5, 1000 * step, duration)
          .slice("optimizer", 0, 0, 1000 * step + 62, 20);
    return mentions(read(events).remarks.doubts, "'work' holds all ops of a step on its rank");
  };
  EXPECT_TRUE(says_longer(2, 95));
  EXPECT_FALSE(says_longer(2, 82));
  EXPECT_FALSE(says_longer(1, 95));  // as the range of a whole run
}

// Loading data comes before its step's ops; a thread that does so at any time runs beside them.
TEST(ChromeActivities, OfFewStepsOrBesideThemAreOfNoStep) {
  Events events = run_steps(3);
  events.slice("build model", 0, 0, 0, 900)
      .slice("evaluate", 0, 0, 1100, 500)
      .slice("save", 0, 0, 3100, 5000)
      .slice("prefetch", 0, 3, 1500, 520)
      .slice("prefetch", 0, 3, 2500, 520);
  for (const int origin : {1000, 2000, 3000}) events.slice("optimizer", 0, 0, origin + 62, 20);
  expect_optimizer(read(events), 3);
  EXPECT_TRUE(mentions(read(events).remarks.notes,
                       "in no step, with its time on the rank where it took the longest: 'save'"));
  EXPECT_FALSE(mentions(read(events).remarks.notes, "'build model'"));
  events.slice("get_batch", 0, 0, 1990, 9).slice("get_batch", 0, 0, 2990, 9);
  const std::vector<traces::WholeStep> steps = read(events).whole_steps;
  ASSERT_EQ(steps.size(), 3u);
  EXPECT_EQ(steps[1].whole, 92'000);  // it begins 10 us before the ops of the second step
}

// Rank 0 waits for 30 us of the 120 us of both ranks; 20 of these are work of another name.
TEST(ChromeActivities, BetweenOpsThatCountAsIdleAreAFault) {
  const auto with = [](const std::string& name, int thread) {
    Events events = run_steps(2);
    for (const int origin : {1000, 2000}) events.slice(name, 0, thread, origin + 12, 20);
    return events;
  };
  const std::vector<std::string> faults = read(with("fused 3", 0)).remarks.faults;
  ASSERT_EQ(faults.size(), 1u);
  EXPECT_NE(faults[0].find("2 slices between the ops, on their threads, took 16.7 % of"),
            std::string::npos)
      << faults[0];
  EXPECT_NE(faults[0].find("'fused 3' (2)"), std::string::npos) << faults[0];
  EXPECT_TRUE(read(with("fused 3", 5)).remarks.faults.empty());
  for (const char* name : {"wait", "recv_forward", "batch_isend_irecv", "grads-all-reduce",
                           "get_batch", "cudaStreamSynchronize"})
    EXPECT_TRUE(read(with(name, 0)).remarks.faults.empty()) << name;
  const std::string ignored = R"({"format":"bubblescope-rules/1","rules":[
    {"match":"fused.*","kind":"ignore"}]})";
  EXPECT_TRUE(read(with("fused 3", 0), ignored).remarks.faults.empty());
}

// Rank 1 waits for the first 10 us of each step of 60 us and for the last 20: work in these ones is
// stray as well, unless rank 0 does it after the step, as ranks do an optimizer's work.
TEST(ChromeActivities, BesideTheOpsOfOtherRanksAreAFault) {
  const auto faults_with = [](int start, int duration, bool is_after_steps, int microbatch) {
    Events events = run_steps(2);
    const std::string arguments = microbatch < 0 ? "" : "\"mb_id\":" + text(microbatch);
    for (const int origin : {1000, 2000}) {
      events.slice("fused", 1, 0, origin + start, duration, arguments);
      if (is_after_steps) events.slice("fused", 0, 0, origin + 62, duration, arguments);
    }
    return read(events).remarks.faults;
  };
  EXPECT_TRUE(mentions(faults_with(42, 15, false, -1),
                       "2 slices between the ops, on their "
                       "threads, took 12.5 % of"));
  EXPECT_TRUE(mentions(faults_with(1, 6, false, -1), "took 5.0 % of"));
  EXPECT_TRUE(faults_with(42, 15, true, -1).empty());
  EXPECT_TRUE(faults_with(42, 30, false, -1).empty());  // it ends 12 us after the step
  EXPECT_TRUE(mentions(faults_with(42, 15, true, 0), "took 12.5 % of"));
}

// 2 us of a slice with 8 us lie in a step whose other ops show that its name is no outer work.
TEST(ChromeActivities, BetweenOpsCountWhereTheStepRuns) {
  Events events = run_steps(1);
  events.slice("fused", 0, 0, 1012, 10).slice("fused", 1, 0, 1058, 8);
  EXPECT_TRUE(mentions(read(events).remarks.faults,
                       "2 slices between the ops, on their threads, "
                       "took 10.0 % of"));  // 12 us of 120 us
}

TEST(ChromeActivities, WithAMicrobatchOnOtherThreadsAreAReservation) {
  const auto doubts_with = [](const std::string& arguments) {
    Events events = run_steps(2);
    for (const int origin : {1000, 2000}) events.slice("fused", 0, 5, origin + 12, 15, arguments);
    const traces::AssembledSteps steps = read(events);
    EXPECT_TRUE(steps.remarks.faults.empty());
    return steps.remarks.doubts;
  };
  const std::string part =
      "2 slices with a micro-batch on other threads took 12.5 % of the pipeline's time while the "
      "rank ran no op";
  EXPECT_TRUE(mentions(doubts_with(R"("mb_id":0)"), part));
  EXPECT_FALSE(mentions(doubts_with(""), part));
}

// The same in a file for each rank; the clock of the second is 1000 s ahead.
TEST(ChromeActivities, BetweenOpsAreAFaultWhateverTheClocksOfFiles) {
  traces::ObservedTrace trace;
  for (int rank = 0; rank < 2; ++rank) {
    Events events;
    const std::string arguments = op_args(-1) + R"(,"pp_rank":)" + text(rank);
    for (const int origin : {1000, 2000}) {
      const int begin = origin + 1'000'000'000 * rank;
      events.slice("forward", rank, 0, begin + 10 * rank, 10, arguments)
          .slice("backward", rank, 0, begin + 40 - 20 * rank, 20, arguments);
      if (rank == 0) events.slice("fused 3", rank, 0, begin + 12, 20);
    }
    const std::string list = events.list();
    traces::append(trace, traces::parse_trace({text(rank) + ".json", list}));
  }
  const std::vector<std::string> faults = traces::assemble_steps(std::move(trace)).remarks.faults;
  EXPECT_TRUE(mentions(faults, "2 slices between the ops, on their threads, took 16.7 % of"));
}

TEST(ChromeActivities, BetweenOpsOfThreadsNamedAfterRanksAreAFault) {
  const auto faults_with = [](const std::string& name, int start, int duration) {
    Events events;
    name_threads(events, 0);
    for (int rank = 0; rank < 2; ++rank)
      events.slice("forward-compute", 0, 10 * rank, 10 * rank, 10, step_args(1, 0))
          .slice("backward-compute", 0, 10 * rank, 40 - 20 * rank, 20, step_args(1, 0));
    events.slice(name, 0, 0, start, duration, step_args(1, -1, -1));
    return read(events).remarks.faults;
  };
  EXPECT_TRUE(mentions(faults_with("fused", 12, 20), "'fused' (1)"));
  EXPECT_TRUE(faults_with("around the backward", 12, 50).empty());
  EXPECT_TRUE(faults_with("optimizer", 12, 20).empty());
}

TEST(ChromeActivities, WordsForWeightGradientsAreOps) {
  for (const char* word : {"dw", "backward_weight", "weight_grad", "bwd_w", "wgrad"}) {
    Events events = run_steps(1);
    for (int rank = 0; rank < 2; ++rank)
      events.slice(word, rank, 0, 1061 - 20 * rank, 15, R"("mb_id":0)");
    const traces::AssembledSteps steps = read(events);
    ASSERT_EQ(steps.steps.size(), 1u) << word;
    EXPECT_EQ(steps.steps[0].schedule->op_count(), 6) << word;
    EXPECT_TRUE(steps.remarks.faults.empty()) << steps.remarks.faults.front();
  }
}

// One weight gradient for four backwards is no split backward, but work that no op contains.
TEST(ChromeActivities, FewWeightGradientsAreWorkBetweenOps) {
  Events events = run_steps(2);
  events.slice("dw", 0, 0, 1012, 20, R"("mb_id":0)");
  const traces::AssembledSteps steps = read(events);
  EXPECT_EQ(steps.steps.size(), 2u);
  EXPECT_TRUE(mentions(steps.remarks.faults, "'dw' (1)"));
}

}  // namespace
}  // namespace bubblescope::tests

// Tests that evaluations among training steps are left out, and nothing else.
#include "traces/measured/evaluation_steps.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "sim/ir/timeline.h"
#include "tests/support/find_text.h"
#include "tests/support/rank_profile.h"
#include "traces/measured/assemble_steps.h"

namespace bubblescope::tests {
namespace {

using traces::StepKey;
using traces::StepOps;
using Steps = std::map<StepKey, StepOps>;

/// The ops of each rank, 100 ns each and one after another: "F0 F1 B0 B1". Those in lower case take
/// no time.
StepOps step_of(const std::vector<std::string>& ranks, bool are_numbered = true) {
  StepOps step;
  for (std::int32_t rank = 0; rank < std::ssize(ranks); ++rank) {
    std::istringstream names(ranks[static_cast<std::size_t>(rank)]);
    Nanos time = 0;
    for (std::string name; names >> name;) {
      traces::ObservedOp observed;
      const bool is_empty = name[0] == 'b';
      observed.op.kind = name[0] == 'F' ? OpKind::kForward : OpKind::kBackward;
      observed.op.stage = rank;
      observed.op.microbatch = std::stoi(name.substr(1));
      observed.recorder = rank;
      observed.numbered = are_numbered;
      observed.start = time;
      observed.end = time + (is_empty ? 0 : 100);
      step.computes.push_back(observed);
      time += 100;
    }
  }
  return step;
}

/// The ops that remain of a step, rank after rank; where `others` are given, they are further
/// steps.
std::string trained(const StepOps& step, const std::vector<StepOps>& others = {}) {
  Steps steps{{{0, 0}, step}};
  for (const StepOps& other : others) steps.emplace(StepKey{0, std::ssize(steps)}, other);
  traces::remove_evaluations(steps);
  std::string text;
  std::int32_t rank = 0;
  for (const traces::ObservedOp& observed : steps.at({0, 0}).computes) {
    text += observed.recorder == rank ? " " : " | ";
    rank = observed.recorder;
    text +=
        (observed.op.kind == OpKind::kForward ? "F" : "B") + std::to_string(observed.op.microbatch);
  }
  return text.substr(1);
}

std::string trained(const std::vector<std::string>& ranks) { return trained(step_of(ranks)); }

TEST(EvaluationSteps, AreTakenFromStepsThatTrain) {
  const std::string training = "F0 F1 B0 B1 | F0 B0 F1 B1";
  EXPECT_EQ(trained({"F0 F1 F0 F1 B0 B1", "F0 F1 F0 B0 F1 B1"}), training);        // before
  EXPECT_EQ(trained({"F0 F1 B0 B1 F0 F1 F2", "F0 B0 F1 B1 F0 F1 F2"}), training);  // after
  EXPECT_EQ(trained({"F0 F0 F1 B0 B1 F0", "F0 F0 B0 F1 B1 F0"}), training);        // both
  EXPECT_EQ(trained({"F0 b0 F0 F1 B0 B1", "F0 b0 F0 B0 F1 B1"}), training);  // empty backwards
  EXPECT_EQ(trained({"F0 F1 B0 B1", "F0 B0 F1 B1"}), training);
  EXPECT_EQ(trained({"F0 F1 F0 F1 B0 B1", "F2 F3 F2 F3 B2 B3"}),  // two directions
            "F0 F1 B0 B1 | F2 F3 B2 B3");
}

// Each of these may be something else: its ops stay, and the step is refused or a fault later.
TEST(EvaluationSteps, AreNoOtherForwardsWithoutBackwards) {
  for (const std::vector<std::string>& ranks : std::vector<std::vector<std::string>>{
           {"F0 F1 F0 B0 F1 B1", "F0 F1 F0 B0 F1 B1"},                       // recomputed
           {"F0 F1 B0", "F0 F1 B0"},                                         // one backward is lost
           {"F0 F1 F2 B1 B2", "F0 F1 F2 B1 B2"},                             // or the first one
           {"F0 F1 F0 F1 B0 B1", "F0 F1 B0 B1"},                             // on one rank alone
           {"F0 F1 F0 F1 B0 B1", "F0 F0 F1 B0 B1"},                          // other micro-batches
           {"F0 F1 B0 B1 F0 F0 F1 B0 B1", "F0 F1 B0 B1 F0 F0 F1 B0 B1"}}) {  // between two runs
    std::string same = ranks[0] + " | " + ranks[1];
    EXPECT_EQ(trained(ranks), same);
  }
}

// Nothing tells a lost backward from an evaluation, unless another step has as many ops.
TEST(EvaluationSteps, OfUnnumberedOpsNeedAStepWithoutAny) {
  const StepOps mixed = step_of({"F0 F1 F2 B0 B1", "F0 F1 B0 F2 B1"}, false);
  EXPECT_EQ(trained(mixed), "F0 F1 F2 B0 B1 | F0 F1 B0 F2 B1");
  EXPECT_EQ(trained(mixed, {step_of({"F0 F1 B0 B1", "F0 B0 F1 B1"}, false)}),
            "F1 F2 B0 B1 | F1 B0 F2 B1");
}

// Where the recording ends within a step, nothing says what the step was.
TEST(EvaluationSteps, AreWholeSteps) {
  Steps steps{{{0, 1}, step_of({"F0 F1 B0 B1", "F0 B0 F1 B1"})},
              {{0, 2}, step_of({"F0 F1 F2", "F0 F1 F2"})},
              {{0, 3}, step_of({"F0 F1", "F0"})},
              {{0, 4}, step_of({"F0 F1"})}};
  EXPECT_EQ(traces::remove_evaluations(steps).steps, (std::set<std::int64_t>{2}));
  EXPECT_EQ(steps.size(), 3u);
}

// Where no step trains, they are what the recording is about.
TEST(EvaluationSteps, KeepTheirForwardsWhereNothingTrains) {
  const StepOps evaluated = step_of({"F0 F1 b0 b1", "F0 b0 F1 b1"});
  Steps steps{{{0, 1}, evaluated}, {{0, 2}, evaluated}};
  EXPECT_TRUE(traces::remove_evaluations(steps).steps.empty());
  EXPECT_TRUE(traces::remove_empty_backwards(steps));
  for (const auto& [_, step] : steps) {
    EXPECT_EQ(step.computes.size(), 4u);
    for (const traces::ObservedOp& op : step.computes) EXPECT_EQ(op.op.kind, OpKind::kForward);
  }
  EXPECT_FALSE(traces::remove_empty_backwards(steps));  // no backward is left
  // A step that has only backwards was cut off, and says nothing of the others.
  steps = {{{0, 1}, evaluated}, {{0, 2}, step_of({"b0 b1", "b0 b1"})}};
  EXPECT_FALSE(traces::remove_empty_backwards(steps));
}

traces::ObservedOp message_of(OpKind kind, Nanos start, Nanos end) {
  traces::ObservedOp message;
  message.op.kind = kind;
  message.start = start;
  message.end = end;
  return message;
}

// Micro-batch 0 is evaluated from 0 to 100 ns, and trained from 100 to 200 and 300 to 400.
TEST(EvaluationSteps, TakeTheirMessagesAlong) {
  StepOps step = step_of({"F0 F0 F1 B0 B1"});
  step.messages = {
      message_of(OpKind::kSendForward, 100, 110), message_of(OpKind::kRecvForward, 60, 100),
      message_of(OpKind::kSendForward, 200, 210), message_of(OpKind::kRecvBackward, 250, 300)};
  Steps steps{{{0, 0}, step}};
  traces::remove_evaluations(steps);
  const std::vector<traces::ObservedOp>& messages = steps.at({0, 0}).messages;
  ASSERT_EQ(messages.size(), 3u);
  EXPECT_EQ(messages[0].start, 60);
  EXPECT_EQ(messages[1].start, 200);
  EXPECT_EQ(messages[2].op.kind, OpKind::kRecvBackward);
}

TEST(EvaluationSteps, TakeTheirActivitiesAlong) {
  Steps steps{{{0, 7}, step_of({"F0 F1 B0 B1 F0"})}};
  const traces::Evaluations found = traces::remove_evaluations(steps);
  ASSERT_EQ(found.within.size(), 1u);
  EXPECT_EQ(found.within.at({0, 7}).at(0).end, 400);
  std::vector<traces::ObservedActivity> activities(4);
  activities[0] = {.name = "optimizer", .step = 7, .start = 400, .end = 400};
  activities[1] = {.name = "loss of the evaluation", .step = 7, .start = 500, .end = 550};
  activities[2] = {.name = "mark", .step = 7, .is_whole_step = true, .start = 0, .end = 600};
  activities[3] = {.name = "mark", .step = 8, .is_whole_step = true, .start = 600, .end = 900};
  activities = traces::without_evaluations(std::move(activities), found.within, {0});
  ASSERT_EQ(activities.size(), 2u);
  EXPECT_EQ(activities[0].name, "optimizer");
  EXPECT_EQ(activities[1].step, 8);
}

/// Two ranks that train on two micro-batches within a step, and evaluate one after it.
RankProfile evaluating_rank(int rank) {
  RankProfile profile(rank);
  const std::string stage = "PP:" + std::to_string(rank);
  const auto run = [&](const std::string& op, int start, int duration) {
    profile.annotation(stage + op, start, duration);
    op[0] == 'F' ? profile.call("aten::mm", start, duration) : profile.gradient(start, duration);
  };
  for (const int step : {0, 10'000}) {
    profile.annotation("ProfilerStep#" + std::to_string(step / 10'000), step, 9'000);
    const int later = step + 100 * rank;
    run("F0", later + 10, 100);
    run("F1", later + 110, 100);
    run("B0", step + (rank == 0 ? 610 : 310), 200);
    run("B1", step + (rank == 0 ? 810 : 510), 200);
    run("F0", step + 5'000 + 100 * rank, 100);
  }
  return profile;
}

TEST(EvaluationSteps, AreNamedFirst) {
  traces::ObservedTrace trace = evaluating_rank(0).read();
  traces::append(trace, evaluating_rank(1).read());
  const traces::AssembledSteps read = traces::assemble_steps(std::move(trace));
  ASSERT_EQ(read.steps.size(), 2u);
  for (const traces::MeasuredStep& step : read.steps) {
    EXPECT_EQ(step.schedule->op_count(), 8u);
    EXPECT_EQ(compute_makespan(step.timeline), 1'000'000);
  }
  for (const traces::WholeStep& step : read.whole_steps) EXPECT_EQ(step.whole, 1'000'000);
  EXPECT_TRUE(read.evaluated_within);
  EXPECT_TRUE(mentions(read.remarks.left_out, "left out: the evaluation in steps 0, 1, forwards"));
  EXPECT_TRUE(read.remarks.faults.empty());
}

/// Two runs of a pipeline, which nothing marks as steps; the optimizer runs behind `optimized`.
traces::ObservedTrace run_twice(const std::vector<int>& optimized, bool are_marked = false) {
  traces::ObservedTrace trace;
  for (const int rank : {0, 1}) {
    RankProfile profile(rank);
    profile.process(10 + rank);
    if (are_marked) profile.annotation("ProfilerStep#1", 500, 3'000);
    for (const int run : {0, 1}) {
      const int start = 1'000 * (1 + run);
      const std::string stage = std::to_string(rank);
      profile.annotation("PP:" + stage + "F0", start + 100 * rank, 100)
          .call("aten::mm", start + 100 * rank, 100)
          .annotation("PP:" + stage + "B0", start + 400 - 200 * rank, 200)
          .gradient(start + 400 - 200 * rank, 200);
      if (std::find(optimized.begin(), optimized.end(), run) != optimized.end())
        profile.annotation("Optimizer.step#SGD.step", start + 700, 20);
    }
    if (rank == 0)
      trace = profile.read();
    else
      traces::append(trace, profile.read());
  }
  return trace;
}

// Gradients are accumulated over two runs, which only the optimizer shows.
TEST(StepsWithoutMarks, AreLongerThanRunsWithoutAnOptimizer) {
  const std::string doubt = "the optimizer did not run behind 1 of 2 runs: a step of the training";
  EXPECT_TRUE(mentions(traces::assemble_steps(run_twice({1})).remarks.doubts, doubt));
  EXPECT_TRUE(mentions(traces::assemble_steps(run_twice({1})).remarks.notes,
                       "no step is marked (ProfilerStep#N): every run of the pipeline counts"));
  // A recording may end before the optimizer runs, and need not hold any.
  for (const std::vector<int>& optimized : std::vector<std::vector<int>>{{0, 1}, {0}, {}})
    EXPECT_FALSE(mentions(traces::assemble_steps(run_twice(optimized)).remarks.doubts,
                          "the optimizer did not run"));
  const traces::AssembledSteps marked = traces::assemble_steps(run_twice({1}, true));
  EXPECT_EQ(marked.steps.size(), 1u);
  EXPECT_FALSE(mentions(marked.remarks.doubts, "the optimizer did not run"));
  EXPECT_FALSE(mentions(marked.remarks.notes, "no step is marked"));
}

// PyTorch's schedules annotate the backwards of eval(), which do nothing.
TEST(EvaluationSteps, AreReportedWhereNothingTrains) {
  traces::ObservedTrace trace;
  for (const int rank : {0, 1}) {
    RankProfile profile(rank);
    profile.process(10 + rank).annotation("ProfilerStep#1", 1'000, 2'000);
    for (const int microbatch : {0, 1}) {
      const std::string op = std::to_string(rank) + "F" + std::to_string(microbatch);
      const int start = 1'000 + 400 * (rank + microbatch);
      profile.annotation("PP:" + op, start, 400).call("aten::mm", start, 400);
      profile.annotation("PP:" + std::to_string(rank) + "B" + std::to_string(microbatch),
                         2'200 + microbatch, 1);
    }
    if (rank == 0)
      trace = profile.read();
    else
      traces::append(trace, profile.read());
  }
  const traces::AssembledSteps read = traces::assemble_steps(std::move(trace));
  ASSERT_EQ(read.steps.size(), 1u);
  EXPECT_TRUE(read.steps[0].schedule->forward_only);
  EXPECT_EQ(compute_makespan(read.steps[0].timeline), 1'200'000);
  EXPECT_TRUE(mentions(read.remarks.doubts, "no backward computes anything, as in an evaluation"));
}

}  // namespace
}  // namespace bubblescope::tests

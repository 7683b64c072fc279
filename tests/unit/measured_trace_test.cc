// Tests that traces of other programs are assembled into steps.
#include <gtest/gtest.h>

#include "sim/analysis/analyze.h"
#include "sim/analysis/replay.h"
#include "sim/ir/error.h"
#include "tests/support/as_written.h"
#include "tests/support/chrome_text.h"
#include "tests/support/trace_refusal.h"
#include "traces/measured/assemble_steps.h"

namespace bubblescope::tests {
namespace {

/// Adds a step of two ranks and one micro-batch: F takes 10 us, B 20 us and messages 1 us. `late`
/// delays rank 1.
void add_step(Events& events, int pid, int step, int origin, int late = 0) {
  const int first = pid * 100;
  events.slice("forward-compute", pid, first, origin, 10, step_args(step, 0))
      .slice("forward-send", pid, first + 1, origin + 10, 1, step_args(step, -1, -1))
      .slice("forward-recv", pid, first + 11, origin, 11, step_args(step, -1, -1))
      .slice("forward-compute", pid, first + 10, origin + 11 + late, 10, step_args(step, 0))
      .slice("backward-compute", pid, first + 10, origin + 21 + late, 20, step_args(step, 0))
      .slice("backward-send", pid, first + 11, origin + 41 + late, 1, step_args(step, -1, -1))
      .slice("backward-recv", pid, first + 1, origin + 11, 31 + late, step_args(step, -1, -1))
      .slice("backward-compute", pid, first, origin + 42 + late, 20, step_args(step, 0))
      .slice("optimizer", pid, first, origin + 70, 5, step_args(step, -1, -1));
}

std::vector<traces::MeasuredStep> read(const std::string& text,
                                       std::vector<std::string>* notes = nullptr) {
  const traces::AssembledSteps read = traces::assemble_steps(traces::parse_trace({"t.json", text}));
  if (notes) *notes = read.remarks.notes;
  return read.steps;
}

TEST(MeasuredTrace, HasAStepPerReplicaAndStep) {
  Events events;
  name_threads(events, 0);
  name_threads(events, 1);
  for (const int step : {7, 9})
    for (const int pid : {0, 1}) add_step(events, pid, step, 1000 * step + pid);
  const std::vector<traces::MeasuredStep> steps = read(events.list());
  ASSERT_EQ(steps.size(), 4u);
  EXPECT_EQ(steps[0].label, "replica 0 step 7");
  EXPECT_EQ(steps[3].label, "replica 1 step 9");
  // The step takes 10 + 1 + 10 + 20 + 1 + 20 us, of which each rank is busy for 30 us. The message
  // that ends rank 0's wait took 1 us.
  const BubbleReport report = analyze(steps[0].schedule, steps[0].program, steps[0].timeline);
  EXPECT_EQ(report.makespan, 62'000);
  EXPECT_EQ(report.ranks[0].busy, 30'000);
  EXPECT_EQ(report.ranks[0].idle_by_cause[static_cast<int>(IdleCause::kCommunication)], 1'000);
  EXPECT_EQ(replay_error(steps[0].program, steps[0].timeline), 0);
}

TEST(MeasuredTrace, TimeThatNothingExplainsIsTheReplayError) {
  Events events;
  name_threads(events, 0);
  add_step(events, 0, 1, 0, 38);  // rank 1 starts 38 us after its message arrived
  const std::vector<traces::MeasuredStep> steps = read(events.list());
  ASSERT_EQ(steps.size(), 1u);
  EXPECT_EQ(steps[0].label, "");
  // Measured 100 us; without the delay 62.
  EXPECT_DOUBLE_EQ(replay_error(steps[0].program, steps[0].timeline), 0.38);
}

TEST(MeasuredTrace, LeavesCutOffStepsOut) {
  Events events;
  name_threads(events, 0);
  add_step(events, 0, 1, 0);
  events.slice("forward-compute", 0, 0, 500, 10, step_args(2, 0));
  std::vector<std::string> notes;
  EXPECT_EQ(read(events.list(), &notes).size(), 1u);
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_NE(notes[0].find("1 step left out"), std::string::npos) << notes[0];
}

TEST(MeasuredTrace, CutsOpsThatOverlapByTheClock) {
  Events events;
  name_threads(events, 0);
  events.slice("forward-compute", 0, 0, 0, 12, step_args(1, 0))
      .slice("forward-compute", 0, 0, 10, 10, step_args(1, 1));
  std::vector<std::string> notes;
  const std::vector<traces::MeasuredStep> steps = read(events.list(), &notes);
  ASSERT_EQ(steps.size(), 1u);
  EXPECT_EQ(steps[0].timeline.end[0], 10'000);
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_NE(notes[0].find("up to 2 us"), std::string::npos) << notes[0];
}

TEST(MeasuredTrace, TellsSlicesWithoutAnEnd) {
  Events events;
  name_threads(events, 0);
  events.slice("forward-compute", 0, 0, 0, 12, step_args(1, 0))
      .slice("forward-compute", 0, 0, 20, -9, step_args(1, 1));
  std::vector<std::string> notes;
  ASSERT_EQ(read(events.list(), &notes).size(), 1u);
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_EQ(notes[0].find("1 slice had a duration below zero"), 0u) << notes[0];
}

TEST(MeasuredTrace, ShowsTheFirstTensorParallelRank) {
  Events events;
  for (const int tp : {0, 1})
    events.thread(0, tp, "PP rank 0, TP rank " + std::to_string(tp) + ", compute")
        .slice("forward-compute", 0, tp, 0, 10 + tp, step_args(1, 0));
  std::vector<std::string> notes;
  const std::vector<traces::MeasuredStep> steps = read(events.list(), &notes);
  ASSERT_EQ(steps.size(), 1u);
  ASSERT_EQ(steps[0].program.size(), 1u);
  EXPECT_EQ(steps[0].timeline.end[0], 10'000);
  EXPECT_EQ(notes.size(), 1u);
}

TEST(MeasuredTrace, ChunksAreStagesAroundTheRanks) {
  Events events;
  events.thread(0, 0, "PP rank 0, TP rank 0, compute")
      .thread(0, 1, "PP rank 1, TP rank 0, compute");
  int time = 0;
  for (const int chunk : {0, 1})
    for (const int rank : {0, 1})
      events.slice("forward-compute", 0, rank, time++ * 10, 10, step_args(1, 0, chunk));
  const std::vector<traces::MeasuredStep> steps = read(events.list());
  ASSERT_EQ(steps.size(), 1u);
  EXPECT_EQ(steps[0].schedule->shape.chunks, 2);
  EXPECT_EQ(steps[0].schedule->order[1], (RankOrder{forward(1, 0), forward(3, 0)}));
}

TEST(MeasuredTrace, ASplitBackwardIsInputAndWeightGradient) {
  Events events;
  events.thread(0, 0, "PP rank 0, TP rank 0, compute")
      .slice("forward-compute", 0, 0, 0, 10, step_args(1, 0))
      .slice("backward-compute", 0, 0, 10, 10, step_args(1, 0))
      .slice("backward-wgrad-compute", 0, 0, 20, 5, step_args(1, 0));
  const std::vector<traces::MeasuredStep> steps = read(events.list());
  ASSERT_EQ(steps.size(), 1u);
  EXPECT_EQ(steps[0].schedule->order[0],
            (RankOrder{forward(0, 0), input_grad(0, 0), weight_grad(0, 0)}));
}

/// The profile of one rank: a call on the host, and its kernels on two streams.
std::string profiled_rank(int rank, int start) {
  const std::string forward = "PP:" + std::to_string(rank) + "F0";
  const std::string backward = "PP:" + std::to_string(rank) + "B0";
  const int back = 300 - start;
  Events events;
  events.slice_of("user_annotation", forward, 9, 9, start - 5, 1)
      .slice_of("gpu_user_annotation", forward, 0, 7, start, 10)
      .slice_of("gpu_user_annotation", forward, 0, 20, start + 4, 8)
      .slice_of("kernel", "sgemm", 0, 7, start, 3)
      .slice_of("user_annotation", backward, 9, 9, back - 5, 1)
      .slice_of("gpu_user_annotation", backward, 0, 7, back, 30);
  return events.kineto(rank);
}

TEST(MeasuredTrace, PutsThePyTorchProfilesOfTheRanksTogether) {
  traces::ObservedTrace trace;
  traces::append(trace, traces::parse_trace({"rank1.json", profiled_rank(1, 120)}));
  traces::append(trace, traces::parse_trace({"rank0.json", profiled_rank(0, 100)}));
  const std::vector<traces::MeasuredStep> steps = traces::assemble_steps(trace).steps;
  ASSERT_EQ(steps.size(), 1u);
  const traces::MeasuredStep& step = steps[0];
  EXPECT_EQ(step.timeline.source, "kineto");
  EXPECT_EQ(step.schedule->order[0], (RankOrder{forward(0, 0), backward(0, 0)}));
  EXPECT_EQ(step.schedule->order[1], (RankOrder{forward(1, 0), backward(1, 0)}));
  EXPECT_EQ(step.timeline.start[0], 0);
  EXPECT_EQ(step.timeline.end[0], 12'000);  // on both streams
}

/// The profile of one rank of 1f1b with two stages and one micro-batch: F takes 10 us, B 20 us, a
/// message 1 us each way. Its clock is `ahead` us ahead.
std::string rank_of_two(int rank, int ahead) {
  Events events;
  const std::string stage = std::to_string(rank);
  events.slice("PP:" + stage + "F0", 0, 0, ahead + (rank == 0 ? 100 : 111), 10)
      .slice("PP:" + stage + "B0", 0, 0, ahead + (rank == 0 ? 142 : 121), 20);
  return events.kineto(rank);
}

traces::AssembledSteps read_ranks(const std::vector<std::string>& texts) {
  traces::ObservedTrace trace;
  for (std::size_t rank = 0; rank < texts.size(); ++rank)
    traces::append(trace,
                   traces::parse_trace({"rank" + std::to_string(rank) + ".json", texts[rank]}));
  return traces::assemble_steps(trace);
}

TEST(MeasuredTrace, SetsClocksThatAreApart) {
  for (const int ahead : {0, 500, -30, 12'345}) {
    const traces::AssembledSteps read = read_ranks({rank_of_two(0, 0), rank_of_two(1, ahead)});
    ASSERT_EQ(read.steps.size(), 1u);
    // 10 + 1 + 10 + 20 + 1 + 20 us, whatever rank 1's clock says: the gap is 1 us both ways.
    EXPECT_EQ(
        analyze(read.steps[0].schedule, read.steps[0].program, read.steps[0].timeline).makespan,
        62'000)
        << ahead;
    ASSERT_EQ(read.remarks.notes.size(), ahead == 0 ? 0u : 1u);
    if (ahead == 0) continue;
    const std::string direction = ahead > 0 ? "back" : "forward";
    EXPECT_EQ(read.remarks.notes[0], "the clock of rank 1 was set " + direction + " by " +
                                         to_text(Nanos{1000} * std::abs(ahead)) +
                                         ", because ops began before their inputs had ended");
  }
}

TEST(MeasuredTrace, TellsThatAWholeStepCannotHaveBeenSo) {
  const traces::AssembledSteps read = read_ranks({rank_of_two(0, 0), rank_of_two(1, 0)});
  for (const Nanos early : {Nanos{0}, Nanos{30'000}}) {
    traces::ObservedTrace trace;
    trace.steps.push_back(read.steps[0]);
    Timeline& timeline = trace.steps[0].timeline;
    for (InstructionId id = 0; id < timeline.start.size(); ++id)
      if (trace.steps[0].program.instructions[id].rank == 1) {
        timeline.start[id] -= early;
        timeline.end[id] -= early;
      }
    const traces::Remarks remarks = traces::assemble_steps(trace).remarks;
    EXPECT_TRUE(remarks.notes.empty());
    ASSERT_EQ(remarks.faults.size(), early == 0 ? 0u : 1u);
    if (early == 0) continue;
    EXPECT_NE(remarks.faults[0].find("before its input"), std::string::npos) << remarks.faults[0];
    EXPECT_NE(remarks.faults[0].find("on rank 0 has ended"), std::string::npos)
        << remarks.faults[0];
  }
}

TEST(MeasuredTrace, LeavesClocksThatFitAlone) {
  // At 5 us ahead the messages seem to take 6 and -4 us, which is within the accuracy of device
  // clocks.
  const traces::AssembledSteps read = read_ranks({rank_of_two(0, 0), rank_of_two(1, 5)});
  EXPECT_TRUE(read.remarks.notes.empty());
  const traces::MeasuredStep& step = read.steps[0];
  EXPECT_EQ(analyze(step.schedule, step.program, step.timeline).ranks[1].first_start, 16'000);
}

TEST(MeasuredTrace, SaysWhereNoShiftOfClocksHelps) {
  Events early;  // begins 80 us before its message can arrive, and is needed at its end
  early.slice("PP:1F0", 0, 0, 30, 91).slice("PP:1B0", 0, 0, 121, 20);
  Events first;
  first.slice("PP:0F0", 0, 0, 100, 10).slice("PP:0B0", 0, 0, 142, 20);
  const traces::AssembledSteps read = read_ranks({first.kineto(0), early.kineto(1)});
  // The cause may be a clock or waiting within the annotation. Both are reported, and the waiting
  // is removed.
  ASSERT_EQ(read.remarks.notes.size(), 2u);
  EXPECT_NE(read.remarks.notes[1].find("1 op taken to begin where the input ends, up to 80 us"),
            std::string::npos)
      << read.remarks.notes[1];
  EXPECT_NE(read.remarks.notes[0].find("an op of rank 1 begins 80 us before its input ends on rank "
                                       "0, which no shift of their clocks explains"),
            std::string::npos)
      << read.remarks.notes[0];
}

TEST(MeasuredTrace, RefusesATraceGivenTwice) {
  const std::string text = rank_of_two(0, 0);
  EXPECT_EQ(error_of([&] {
              read_ranks({text, rank_of_two(1, 0), text});
            }),
            "rank2.json has the ops that are in rank0.json already, at the same times; give "
            "every trace once");
}

TEST(MeasuredTrace, SaysThatTheLastRankIsMissing) {
  Events events;
  events.slice("PP:0F0", 0, 0, 0, 10)
      .slice("PP:0SEND_F0", 0, 1, 10, 1)
      .slice("PP:0RECV_B0", 0, 1, 30, 1)
      .slice("PP:0B0", 0, 0, 31, 20);
  const traces::AssembledSteps read = read_ranks({events.kineto(0)});
  ASSERT_EQ(read.remarks.notes.size(), 1u);
  EXPECT_NE(read.remarks.notes[0].find("0SEND_F0 is a message with stage 1, which no trace runs"),
            std::string::npos)
      << read.remarks.notes[0];
}

TEST(MeasuredTrace, SaysWhatATraceHasInsteadOfOps) {
  const std::string said = refusal(Events().slice_of("kernel", "sgemm", 0, 7, 0, 3).kineto(0));
  EXPECT_NE(said.find("t.json: there is no pipeline op in this trace of PyTorch's profiler (it has "
                      "1 kernel)"),
            std::string::npos)
      << said;
}

TEST(MeasuredTrace, RefusesMessagesAlone) {
  const std::string said = refusal(Events().slice("PP:0SEND_F0", 0, 0, 0, 1).kineto(0));
  EXPECT_EQ(said, "t.json: there are messages, but no compute op such as 0F0 on any rank");
}

TEST(MeasuredTrace, RefusesWhatIsNoTrace) {
  const struct {
    const char* text;
    const char* said;
  } cases[] = {
      {"", "t.json is empty"},
      {"F0 F1", "is in no format that holds traces"},
      {"[{\"ph\":\"X\",", "t.json:1:"},
      {"{\"traceEvents\":[{\"ph\":1e999}]}", "not valid JSON"},
      {"[]", "there is no pipeline op"},
      {"{\"nodes\":[]}", "this json has no list of events"},
      {R"({"schema":"1.1.1-chakra.0.0.4","nodes":[{"id":2,"name":"aten::mm"}]})",
       "this is an execution trace of PyTorch"},
      {R"([{"ph":"X","name":"0F0","ts":1}])", "the event '0F0' has no \"dur\""},
      {R"([{"ph":"X","name":"0F0","dur":1}])", "the event '0F0' has no \"ts\""},
      {R"([{"ph":"X","name":"0F0","ts":1e30,"dur":1}])", "1e30, which is out of range"},
      {R"([{"ph":"X","name":"0F0","ts":"one","dur":1}])", "the time 'one', which is not a number"},
      {R"([{"ph":"X","name":"0B0","ts":1,"dur":1}])", "not a complete step"},
      {R"([{"ph":"X","name":"99F0","ts":1,"dur":1}])", "no rank runs stage"},
      {"rank,lane,op,kind,stage,microbatch,start_ns,end_ns\n0,compute,x\n", "has 3 columns"},
      {"rank,lane,op,kind,stage,microbatch,start_ns,end_ns\n0,c,0F0,F,0,0,5,4\n", "column 8: '4'"},
  };
  for (const auto& one : cases) {
    const std::string said = refusal(one.text);
    EXPECT_NE(said.find(one.said), std::string::npos) << one.text << "\n" << said;
  }
}

TEST(MeasuredTrace, ABareListMayLackItsLastBracket) {
  Events events;
  events.slice("0F0", 0, 0, 0, 10);
  std::string text = events.list();
  text.pop_back();
  EXPECT_EQ(read(text).size(), 1u);
}

}  // namespace
}  // namespace bubblescope::tests

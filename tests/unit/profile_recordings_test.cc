// Tests which recordings of PyTorch's profiler belong together, and what lies between their ops.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "sim/ir/error.h"
#include "tests/support/error_text.h"
#include "tests/support/rank_profile.h"
#include "traces/measured/assemble_steps.h"

namespace bubblescope::tests {
namespace {

/// A step of a rank of two, which begins at `start` and takes 100.
RankProfile& add_step(RankProfile& profile, int rank, int number, int start) {
  const std::string stage = std::to_string(rank);
  const int inner = rank * 10;
  return profile.annotation("ProfilerStep#" + std::to_string(number), start, 100)
      .annotation("PP:" + stage + "F0", start + inner, 10)
      .call("aten::mm", start + inner, 10)
      .annotation("PP:" + stage + "B0", start + 80 - inner * 3, 20)
      .gradient(start + 80 - inner * 3, 20);
}

traces::ObservedTrace record_windows(int second_number, int second_process) {
  traces::ObservedTrace trace;
  for (const int rank : {0, 1}) {
    RankProfile first(rank);
    traces::append(trace, add_step(first, rank, 1, 1000).read());
    RankProfile second(rank);
    second.process(second_process);
    traces::append(trace, add_step(second, rank, second_number, 5000).read());
  }
  return trace;
}

std::string error_of_windows(int second_number, int second_process) {
  return error_of([&] { record_windows(second_number, second_process); });
}

// A profiler with several cycles writes a file for each: they are steps of one rank, not replicas.
TEST(ProfileRecordings, RecordingsOfOneProcessAreItsSteps) {
  const traces::ObservedTrace trace = record_windows(4, 7);
  EXPECT_EQ(trace.recorders.size(), 2u);
  const traces::AssembledSteps read = traces::assemble_steps(trace);
  ASSERT_EQ(read.steps.size(), 2u);
  EXPECT_EQ(read.steps[0].label, "step 1");
  EXPECT_EQ(read.steps[1].label, "step 4");
  EXPECT_TRUE(read.remarks.faults.empty());
}

TEST(ProfileRecordings, RecordingsThatCountAlikeAreRefused) {
  const std::string text = error_of_windows(1, 7);
  EXPECT_NE(text.find("were recorded by one process, and both have a step 1"), std::string::npos)
      << text;
}

TEST(ProfileRecordings, TwoRunsInOneFolderAreRefused) {
  const std::string text = error_of_windows(4, 8);
  EXPECT_NE(text.find("in processes 7 and 8: they are two runs of a job"), std::string::npos)
      << text;
}

// A run that was resumed on another host.
TEST(ProfileRecordings, TwoRunsOnTwoHostsAreRefused) {
  RankProfile second(1);
  std::string text = add_step(second, 1, 4, 5000).text();
  text.replace(text.find("\"one\""), 5, "\"two\"");
  traces::ObservedTrace trace;
  for (const int rank : {0, 1}) {
    RankProfile first(rank);
    traces::append(trace, add_step(first, rank, 1, 1000).read());
  }
  EXPECT_EQ(error_of([&] {
              traces::append(trace, traces::parse_trace({"resumed.json", text}));
            }),
            "rank1.json and resumed.json record the same rank at different times, on hosts one "
            "and two: they are two runs of a job; give the traces of one run");
}

// Without groups, files of the same stages are replicas; but these never run at the same time.
TEST(ProfileRecordings, PipelinesThatNeverRunTogetherAreNoReplicas) {
  traces::ObservedTrace trace;
  for (const int start : {1000, 5000})
    for (const int rank : {0, 1}) {
      RankProfile profile(rank);
      profile.process(start + rank);
      std::string text = add_step(profile, rank, 1, start).text();
      text.replace(text.find("distributedInfo"), 15, "other_Informati");
      traces::append(
          trace, traces::parse_trace({std::to_string(start) + "-" + std::to_string(rank), text}));
    }
  EXPECT_EQ(error_of([&] { traces::assemble_steps(trace); }),
            "1000-0 and 5000-0 are of pipelines that never run at the same time, so they are "
            "two runs and not data-parallel replicas; give the traces of one run");
}

/// Four ranks as two pipelines of two: ranks 0 and 1, and 2 and 3. `data` are data-parallel groups.
std::vector<traces::MeasuredStep> read_two_pipelines(const std::string& data, int first_pipeline) {
  traces::ObservedTrace trace;
  for (const int rank : {0, 1, 2, 3}) {
    if (rank / 2 < first_pipeline) continue;
    RankProfile profile(rank, 4);
    profile.groups(R"({"pg_desc":"mesh_pp","ranks":[0,1]},{"pg_desc":"mesh_pp","ranks":[2,3]})" +
                   data);
    traces::append(trace, add_step(profile, rank % 2, 1, 1000 + rank).read());
  }
  return traces::assemble_steps(trace).steps;
}

// Replicas have the numbers of their data-parallel ranks, whether all of them were recorded or not.
TEST(ProfileRecordings, ReplicasHaveTheNumbersOfTheJob) {
  const std::string data =
      R"(,{"pg_desc":"mesh_dp","ranks":[0,2]},{"pg_desc":"mesh_dp","ranks":[1,3]})";
  const std::vector<traces::MeasuredStep> both = read_two_pipelines(data, 0);
  ASSERT_EQ(both.size(), 2u);
  EXPECT_EQ(both[0].label, "replica 0");
  EXPECT_EQ(both[1].label, "replica 1");
  EXPECT_EQ(read_two_pipelines(data, 1).at(0).replica, 1);
}

// Groups of shards give both pipelines the same place, and no group gives them any.
TEST(ProfileRecordings, ReplicasWithoutNumbersAreCounted) {
  for (const char* data :
       {"", R"(,{"pg_desc":"mesh_dp","ranks":[0,1]},{"pg_desc":"mesh_dp","ranks":[2,3]})"}) {
    const std::vector<traces::MeasuredStep> steps = read_two_pipelines(data, 0);
    ASSERT_EQ(steps.size(), 2u);
    EXPECT_EQ(steps[0].replica, 0);
    EXPECT_EQ(steps[1].replica, 1);
  }
}

// tools/hooks names Schedule1F1B's ops, whose receives complete between them: the first backward of
// rank 0 could begin when its gradient had come at 190, not when rank 1 had computed it at 130.
TEST(ProfileRecordings, ReceivesBetweenOpsAreMessages) {
  const traces::ObservedTrace trace = RankProfile(0)
                                          .annotation("ProfilerStep#1", 0, 300)
                                          .annotation("PP:0F0", 10, 40)
                                          .call("aten::mm", 12, 30)
                                          .annotation("gloo:recv", 60, 130)
                                          .annotation("PP:0B0", 192, 80)
                                          .gradient(193, 70)
                                          .read();
  const auto message = std::find_if(
      trace.ops.begin(), trace.ops.end(),
      [](const traces::ObservedOp& observed) { return observed.op.kind == OpKind::kRecvBackward; });
  ASSERT_NE(message, trace.ops.end());
  EXPECT_EQ(message->start, 50'000);
  EXPECT_EQ(message->end, 190'000);
}

// PyTorch's own annotations hold the waiting, so what completes between them is for a later op.
TEST(ProfileRecordings, ReceivesBetweenOpsThatHoldTheirWaitingAreNone) {
  const traces::ObservedTrace trace = RankProfile(0)
                                          .annotation("ProfilerStep#1", 0, 300)
                                          .annotation("PP:0F0", 10, 40)
                                          .call("aten::mm", 32, 15)
                                          .annotation("gloo:recv", 11, 20)
                                          .annotation("gloo:recv", 60, 130)
                                          .annotation("PP:0B0", 192, 80)
                                          .gradient(193, 70)
                                          .read();
  EXPECT_TRUE(std::none_of(trace.ops.begin(), trace.ops.end(), [](const auto& observed) {
    return observed.op.kind == OpKind::kRecvBackward;
  }));
}

std::string refusal_of(const RankProfile& profile) {
  return error_of([&] { traces::assemble_steps(profile.read()); });
}

// The second of the three forwards has no backward: an evaluation between two runs.
TEST(ProfileRecordings, StepsWithOtherRunsAreRefused) {
  const std::string text = refusal_of(RankProfile(0, 1)
                                          .annotation("ProfilerStep#1", 0, 300)
                                          .annotation("PP:0F0", 10, 40)
                                          .annotation("PP:0B0", 60, 40)
                                          .annotation("PP:0F0", 110, 40)
                                          .annotation("PP:0F0", 160, 40)
                                          .annotation("PP:0B0", 210, 40));
  EXPECT_NE(text.find("0F0 runs more than once in a step"), std::string::npos) << text;
  EXPECT_NE(text.find("profiler.step() after each"), std::string::npos) << text;
}

/// A profile without marks, whose ops follow from its messages, with further annotations.
std::string refusal_with(const std::vector<std::string>& annotations) {
  RankProfile profile(0);
  profile.forward_call(10, 40).event("cpu_op", "c10d::send", 52, 1).gradient(120, 40);
  int start = 200;
  for (const std::string& name : annotations) profile.annotation(name, start += 10, 5);
  return refusal_of(profile);
}

TEST(ProfileRecordings, MissingStepsAreThoseOfAnAnnotation) {
  const std::string text = refusal_with({"iteration 3", "iteration 4", "Optimizer.step#SGD.step"});
  EXPECT_NE(text.find(R"x({"match":"iteration (\\d+)","kind":"step","step":"$1"})x"), text.npos)
      << text;
  EXPECT_NE(text.find("'iteration 3' (2 like it)"), text.npos) << text;
  EXPECT_NE(text.find("give profile() a schedule"), text.npos) << text;
}

TEST(ProfileRecordings, AnnotationsThatNameOpsGetRules) {
  const std::string text = refusal_with({"recv_forward", "F3", "B3", "F4", "B4"});
  EXPECT_NE(text.find(R"x({"match":"F(\\d+)","kind":"F","microbatch":"$1"})x"), text.npos) << text;
  EXPECT_NE(text.find(R"x({"match":"B(\\d+)","kind":"B","microbatch":"$1"})x"), text.npos) << text;
}

// The last rank has no micro-batch in flight after each.
TEST(ProfileRecordings, StepsThatNothingMarksNeedAllRanks) {
  const std::string text = refusal_of(RankProfile(0)
                                          .forward_call(10, 40)
                                          .event("cpu_op", "c10d::send", 52, 1)
                                          .annotation("gloo:send", 53, 5)
                                          .event("cpu_op", "c10d::recv_", 60, 1)
                                          .annotation("gloo:recv", 61, 50)
                                          .gradient(120, 40));
  EXPECT_NE(text.find("only if all ranks are given"), std::string::npos) << text;
  EXPECT_EQ(text.find("a file for"), std::string::npos) << text;
}

// Releases of PyTorch before distributedInfo differ from others in nothing else.
TEST(ProfileRecordings, AMissingRankIsNamedWhereOpsHaveNoNames) {
  std::string text = RankProfile(0)
                         .annotation("ProfilerStep#1", 0, 300)
                         .forward_call(10, 40)
                         .event("cpu_op", "c10d::send", 52, 1)
                         .event("cpu_op", "c10d::recv_", 60, 1)
                         .gradient(120, 40)
                         .text();
  const std::size_t begin = text.find("\"distributedInfo\"");
  text.erase(begin, text.find("\"traceEvents\"") - begin);
  std::string said;
  try {
    traces::parse_trace({"rank0.json", text});
  } catch (const Error& error) {
    said = error.what();
  }
  EXPECT_NE(
      said.find("It has no distributedInfo, so the rank is unknown. PyTorch writes it only in "
                "newer releases, and only if init_process_group() ran before the profiler "
                "started; record again, or annotate the ops"),
      std::string::npos)
      << said;
  EXPECT_EQ(said.find("a file for"), std::string::npos) << said;
}

TEST(ProfileRecordings, MessagesWithoutAKernelOfTheirOwnAreNamed) {
  const auto doubts_with = [](const std::string& kernel) {
    RankProfile profile(0, 1);
    profile.annotation("ProfilerStep#1", 0, 300)
        .annotation("PP:0F0", 10, 40)
        .event("cpu_op", "c10d::send", 52, 1)
        .annotation("PP:0B0", 60, 40)
        .event("kernel", kernel, 55, 5, 7, "\"correlation\":1");
    std::string text;
    for (const std::string& doubt :
         traces::parse_trace({"rank0.json", profile.text()}).remarks.doubts)
      text += doubt + "\n";
    return text;
  };
  const std::string generic = doubts_with("ncclDevKernel_Generic_2(ncclDevKernelArgs)");
  EXPECT_NE(generic.find("sends and receives are posted (1), but no kernel is known as theirs"),
            std::string::npos)
      << generic;
  EXPECT_EQ(doubts_with("ncclDevKernel_SendRecv(ncclDevKernelArgs)").find("are posted"),
            std::string::npos);
}

/// A profile that states no rank: F and B of a stage.
std::string anonymous_profile(int stage, int start) {
  const auto slice = [&](const char* kind, int at) {
    return R"({"ph":"X","cat":"user_annotation","name":"PP:)" + std::to_string(stage) + kind +
           R"(0","pid":7,"tid":1,"ts":)" + std::to_string(start + at) + R"(,"dur":10})";
  };
  return R"({"schemaVersion":1,"host_name":"one","traceEvents":[)" + slice("F", 10 * stage) + "," +
         slice("B", 50 - 10 * stage) + "]}";
}

// Four files without distributedInfo: two of stage 0 and two of stage 1. One pipeline is so much
// later that no rank of it can belong to the other.
TEST(ProfileRecordings, FilesOfTheSameStagesAreReplicasWithoutARank) {
  traces::ObservedTrace trace;
  for (const int file : {0, 1, 2, 3})
    traces::append(trace, traces::parse_trace({"file" + std::to_string(file) + ".json",
                                               anonymous_profile(file / 2, 25 * (file % 2))}));
  const std::vector<traces::MeasuredStep> steps = traces::assemble_steps(trace).steps;
  ASSERT_EQ(steps.size(), 2u);
  EXPECT_EQ(steps[0].program.ranks, 2);
  EXPECT_EQ(steps[1].replica, 1);
}

}  // namespace
}  // namespace bubblescope::tests

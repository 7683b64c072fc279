// Tests PyTorch profiles as the profiler writes them: with annotations that include waiting, with
// annotations of pairs, and with rules.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "sim/ir/error.h"
#include "tests/support/error_text.h"
#include "tests/support/rank_profile.h"
#include "traces/measured/assemble_steps.h"
#include "traces/measured/name_rules.h"

namespace bubblescope::tests {
namespace {

TEST(MeasuredProfile, AnOpBeginsWhenItsReceiveHasCome) {
  const traces::ObservedTrace trace = RankProfile(1)
                                          .annotation("gloo:recv", 0, 60)
                                          .annotation("PP:1F0", 10, 90)
                                          .call("aten::mm", 62, 30)
                                          .read();
  EXPECT_EQ(op_of(trace, "1F0").start, 60'000);
  EXPECT_EQ(op_of(trace, "1F0").end, 100'000);
}

TEST(MeasuredProfile, AnOpThatDoesNotWaitIsItsAnnotation) {
  const traces::ObservedTrace trace = RankProfile(1)
                                          .annotation("gloo:recv", 0, 5)
                                          .annotation("PP:1F0", 10, 90)
                                          .call("aten::mm", 30, 30)
                                          .read();
  EXPECT_EQ(op_of(trace, "1F0").start, 10'000);
}

// Without marks, the n-th time that an op runs is step n. Its message belongs to the same step,
// even if the op waited in the second step only.
TEST(MeasuredProfile, AMessageIsOfTheStepOfItsOp) {
  const traces::ObservedTrace trace = RankProfile(1)
                                          .annotation("PP:1F0", 10, 90)
                                          .call("aten::mm", 10, 30)
                                          .annotation("gloo:recv", 200, 60)
                                          .annotation("PP:1F0", 210, 90)
                                          .call("aten::mm", 262, 30)
                                          .read();
  ASSERT_EQ(trace.ops.size(), 3u);
  EXPECT_EQ(trace.ops[2].op.kind, OpKind::kRecvForward);
  EXPECT_EQ(trace.ops[2].step, 1);
}

// GPipe's annotations also include the receive before the computation and the send after it.
TEST(MeasuredProfile, AnOpEndsWhereItPostsItsResult) {
  const traces::ObservedTrace trace = RankProfile(1)
                                          .annotation("Forward 0", 0, 100)
                                          .call("aten::empty_strided", 1, 1)
                                          .call("c10d::recv_", 2, 1)
                                          .annotation("gloo:recv", 3, 40)
                                          .call("aten::mm", 45, 30)
                                          .call("c10d::send", 80, 15)
                                          .read();
  ASSERT_EQ(trace.ops.size(), 2u);
  EXPECT_EQ(trace.ops[0].start, 43'000);
  EXPECT_EQ(trace.ops[0].end, 80'000);
  EXPECT_EQ(trace.ops[1].op.kind, OpKind::kRecvForward);  // the message that it waited for
  EXPECT_EQ(trace.ops[1].end, 43'000);
}

TEST(MeasuredProfile, AnOpEndsWithItsAnnotationAtTheLatest) {
  const traces::ObservedTrace trace =
      RankProfile(1).annotation("PP:1F0", 10, 90).call("aten::mm", 20, 500).read();
  EXPECT_EQ(op_of(trace, "1F0").end, 100'000);
}

TEST(MeasuredProfile, APairPartsAtTheFirstGradientFunction) {
  const traces::ObservedTrace trace = RankProfile(1)
                                          .annotation("PP:(0F4;3B1)OVERLAP_F_B", 0, 100)
                                          .annotation("gloo:recv", -10, 60)
                                          .call("aten::mm", 5, 30)
                                          .gradient(52, 40)
                                          .read();
  EXPECT_EQ(op_of(trace, "0F4").start, 0);
  EXPECT_EQ(op_of(trace, "0F4").end, 35'000);
  EXPECT_EQ(op_of(trace, "3B1").start, 50'000);
  EXPECT_EQ(op_of(trace, "3B1").end, 100'000);
  EXPECT_EQ(op_of(trace, "0F4").op.pairing, Pairing::kFirst);
}

/// A hook names the ops within PyTorch's own annotation of the pair.
TEST(MeasuredProfile, APairIsOneWhereItsOpsAreNamedWithinIt) {
  const traces::ObservedTrace trace = RankProfile(1)
                                          .annotation("PP:(0F4;3B1)OVERLAP_F_B", 0, 100)
                                          .annotation("PP:0F4", 2, 34)
                                          .call("aten::mm", 5, 30)
                                          .annotation("PP:3B1", 38, 60)
                                          .gradient(52, 40)
                                          .annotation("PP:0F5", 110, 30)
                                          .call("aten::mm", 115, 20)
                                          .read();
  for (const char* const name : {"0F4", "3B1"})
    EXPECT_EQ(std::count_if(trace.ops.begin(), trace.ops.end(),
                            [&](const auto& observed) { return to_string(observed.op) == name; }),
              1)
        << name;
  EXPECT_EQ(op_of(trace, "0F4").op.pairing, Pairing::kFirst);
  EXPECT_EQ(op_of(trace, "3B1").end, 100'000);
  EXPECT_EQ(op_of(trace, "0F5").op.pairing, Pairing::kAlone);
}

TEST(MeasuredProfile, APairThatNothingPartsIsRefused) {
  EXPECT_EQ(error_of([&] { RankProfile(1).annotation("PP:(0F4;3B1)OVERLAP_F_B", 0, 100).read(); }),
            "rank1.json: 'PP:(0F4;3B1)OVERLAP_F_B' is one annotation for two ops, and nothing "
            "within it shows where the forward ends and the backward begins; record the host's "
            "operators, too (ProfilerActivity.CPU)");
}

TEST(MeasuredProfile, StepsAreThoseOfTheProfiler) {
  const traces::ObservedTrace trace = RankProfile(0, 1)
                                          .annotation("ProfilerStep#7", 0, 100)
                                          .annotation("ProfilerStep#8", 100, 100)
                                          .annotation("PP:0F0, op_id = 11", 110, 50)
                                          .read();
  ASSERT_EQ(trace.ops.size(), 1u);
  EXPECT_EQ(trace.ops[0].step, 8);
}

// The autograd engine launches from a thread of its own, outside the calling thread's annotation.
TEST(MeasuredProfile, ABackwardIsTheKernelsThatAnyThreadLaunchedInIt) {
  const auto correlation = [](int id) { return "\"correlation\":" + std::to_string(id); };
  const traces::ObservedTrace trace =
      RankProfile(0, 1)
          .annotation("PP:0B0", 0, 50)
          .event("cuda_runtime", "cudaLaunchKernel", 10, 1, 2, correlation(4))
          .event("cuda_runtime", "cudaLaunchKernel", 60, 1, 2, correlation(5))
          .event("kernel", "gemm", 200, 30, 70, correlation(4))
          .event("kernel", "another", 240, 30, 70, correlation(5))
          .read();
  EXPECT_EQ(op_of(trace, "0B0").start, 200'000);
  EXPECT_EQ(op_of(trace, "0B0").end, 230'000);
}

// A first stage has no input whose gradient it could compute, so its I launches nothing; the host
// passes it long before the device has reached the forward.
TEST(MeasuredProfile, AnOpWithoutKernelsIsWhereTheDeviceReachesIt) {
  const auto correlation = [](int id) { return "\"correlation\":" + std::to_string(id); };
  const traces::ObservedTrace trace =
      RankProfile(0, 1)
          .annotation("PP:0F0", 0, 20)
          .event("cuda_runtime", "cudaLaunchKernel", 10, 1, 2, correlation(4))
          .annotation("PP:0I0", 30, 5)
          .annotation("PP:0W0", 40, 20)
          .event("cuda_runtime", "cudaLaunchKernel", 45, 1, 2, correlation(5))
          .event("kernel", "gemm", 200, 30, 70, correlation(4))
          .event("kernel", "gemm", 500, 30, 70, correlation(5))
          .read();
  EXPECT_EQ(op_of(trace, "0F0").end, 230'000);
  EXPECT_EQ(op_of(trace, "0I0").start, 500'000);
  EXPECT_EQ(op_of(trace, "0I0").end, 500'000);
  EXPECT_EQ(op_of(trace, "0W0").start, 500'000);
}

TEST(MeasuredProfile, RecordingsThatEndBeforeTheirStepAreDoubted) {
  const auto doubts_of = [](int step) {
    return RankProfile(0)
        .annotation("ProfilerStep#3", 0, step)
        .annotation("PP:0F0", 10, 400)
        .annotation("PP:0B0", 410, 400)
        .read()
        .remarks.doubts;
  };
  EXPECT_TRUE(doubts_of(1000).empty());
  ASSERT_EQ(doubts_of(2000).size(), 1u);
  EXPECT_NE(doubts_of(2000)[0].find("in the last 1.19 ms of step 3"), std::string::npos)
      << doubts_of(2000)[0];
}

TEST(MeasuredProfile, TrainingWithoutMessagesIsNoPipeline) {
  RankProfile rank(0);
  rank.annotation("ProfilerStep#3", 0, 1000).forward_call(10, 100).gradient(501, 199);
  EXPECT_TRUE(fails_with(
      [&] { rank.read(); },
      "rank0.json: there is no pipeline op in this trace of PyTorch's profiler (it has 2 "
      "cpu_op, 1 user_annotation); annotate the ops: for torch.distributed.pipelining call "
      "annotate_pytorch() of tools/hooks/"));
}

TEST(MeasuredProfile, RanksOfOneHostHaveOneClock) {
  traces::ObservedTrace trace;
  traces::append(trace,
                 RankProfile(0).annotation("PP:0F0", 0, 10).annotation("PP:0B0", 20, 90).read());
  traces::append(trace,
                 RankProfile(1).annotation("PP:1F0", 1, 39).annotation("PP:1B0", 40, 40).read());
  const std::vector<traces::MeasuredStep> steps = traces::assemble_steps(trace).steps;
  ASSERT_EQ(steps.size(), 1u);
  // 1F0 waits for 0F0 until 10, and 0B0 waits for 1B0 until 80. No clock is shifted.
  const Timeline& timeline = steps[0].timeline;
  const Program& program = steps[0].program;
  for (InstructionId id = 0; id < program.size(); ++id) {
    const std::string op = to_string(program.instructions[id].op);
    if (op != "1F0" && op != "0B0") continue;
    EXPECT_EQ(timeline.start[id], op == "1F0" ? 10'000 : 80'000) << op;
  }
}

TEST(MeasuredProfile, FilesOfTheSameStagesAreReplicas) {
  traces::ObservedTrace trace;
  for (const int rank : {0, 1, 2, 3}) {
    const std::string stage = std::to_string(rank / 2);
    const int later = rank % 2 + rank / 2 * 20;
    traces::append(trace, RankProfile(rank, 4)
                              .annotation("PP:" + stage + "F0", 10 + later, 10)
                              .annotation("PP:" + stage + "B0", 80 - later, 10)
                              .read());
  }
  const std::vector<traces::MeasuredStep> steps = traces::assemble_steps(trace).steps;
  ASSERT_EQ(steps.size(), 2u);
  EXPECT_EQ(steps[1].label, "replica 1");
  EXPECT_EQ(steps[0].program.ranks, 2);
}

// The first of three files lacks its rank, so that it would be taken for the last.
TEST(MeasuredProfile, StagesPlaceTracesOfWhichSomeStateTheirRank) {
  traces::ObservedTrace trace;
  for (const int rank : {0, 1, 2}) {
    const std::string stage = std::to_string(rank);
    traces::append(trace, RankProfile(rank, 3)
                              .annotation("PP:" + stage + "F0", 10 + 20 * rank, 10)
                              .annotation("PP:" + stage + "B0", 120 - 20 * rank, 10)
                              .read());
  }
  trace.recorders[0].rank.reset();
  const std::vector<traces::MeasuredStep> steps = traces::assemble_steps(trace).steps;
  ASSERT_EQ(steps.size(), 1u);
  for (std::size_t rank = 0; rank < 3; ++rank)
    EXPECT_EQ(steps[0].schedule->order[rank][0].stage, static_cast<std::int32_t>(rank));
}

// A call of 20 that begins 10 before the annotation: in a recording it would lie within or outside.
TEST(MeasuredProfile, CallsThatReachOverAnOpAreDoubted) {
  RankProfile profile(1);
  profile.annotation("PP:1F0", 10, 90).call("aten::mm", 20, 30);
  EXPECT_TRUE(profile.read().remarks.doubts.empty());
  profile.call("aten::mm", 0, 20);
  const traces::ObservedTrace trace = profile.read();
  ASSERT_EQ(trace.remarks.doubts.size(), 1u);
  EXPECT_NE(trace.remarks.doubts[0].find("ops or calls (1) begin within a call"),
            std::string::npos);
}

// tools/hooks/bubblescope_hooks.py names ops within the names of PyTorch's runtime.
TEST(MeasuredProfile, OfTwoNamesForAnOpTheInnerCounts) {
  const traces::ObservedTrace trace = RankProfile(1)
                                          .annotation("ProfilerStep#2", 0, 500)
                                          .annotation("Forward 0", 10, 200)
                                          .annotation("PP:1F0", 110, 90)
                                          .call("aten::mm", 110, 80)
                                          .read();
  ASSERT_EQ(trace.ops.size(), 1u);
  EXPECT_EQ(to_string(trace.ops[0].op), "1F0");
  EXPECT_FALSE(trace.ops[0].chunk);
  EXPECT_GE(trace.ops[0].start, 110'000);
}

std::string refusal_of(const RankProfile& profile, const traces::NameRules* rules = nullptr) {
  try {
    traces::parse_trace({"rank0.json", profile.text(), rules});
  } catch (const Error& error) {
    return error.what();
  }
  return "read";
}

TEST(MeasuredProfile, PartsOfOverlappedOpsAreNamedInTheRefusal) {
  RankProfile profile(0);
  for (const int start : {100, 200})
    profile.annotation("attn(F)", start, 50)
        .event("cuda_runtime", "cudaLaunchKernel", start + 1, 2, 9,
               "\"correlation\":" + std::to_string(start))
        .event("kernel", "gemm", start + 500, 4000, 70, "\"correlation\":" + std::to_string(start));
  const std::string said = refusal_of(profile);
  EXPECT_NE(said.find("attn(F) 2 times (4.00 ms of kernels each)"), std::string::npos) << said;
  EXPECT_NE(said.find("no stage and no micro-batch"), std::string::npos) << said;
}

TEST(MeasuredProfile, OpsWithoutMicrobatchNeedStepsThatAreMarked) {
  const traces::NameRules rules = traces::NameRules::parse(
      R"({"format":"bubblescope-rules/1","rules":[{"match":"fwd","kind":"F"},)"
      R"({"match":"bwd","kind":"B"}]})",
      "rules");
  RankProfile profile(0);
  profile.annotation("fwd", 10, 10).annotation("bwd", 30, 20);
  EXPECT_NE(refusal_of(profile, &rules).find("marks no step"), std::string::npos);
  profile.annotation("ProfilerStep#4", 0, 100);
  const traces::ObservedTrace trace = traces::parse_trace({"rank0.json", profile.text(), &rules});
  ASSERT_EQ(trace.ops.size(), 2u);
  EXPECT_EQ(trace.ops[0].step, 4);
  EXPECT_FALSE(trace.ops[0].numbered);
}

// A rule that would take backwards for forwards is worse than none.
TEST(MeasuredProfile, ARuleSaysTheKindOnlyWhereTheNameDoes) {
  RankProfile letters(0);
  letters.annotation("B3", 10, 10).call("aten::mm", 11, 1);
  const std::string known = refusal_of(letters);
  EXPECT_NE(
      known.find(
          R"x(can say what they mean: {"format":"bubblescope-rules/1","rules":[{"match":"B(\\d+)","kind":"B")x"),
      known.npos)
      << known;
  RankProfile words(0);
  words.annotation("retour 3", 10, 10).call("aten::mm", 11, 1);
  const std::string unknown = refusal_of(words);
  EXPECT_NE(
      unknown.find(
          R"x(with F, B, I, W or R for their kind: {"format":"bubblescope-rules/1","rules":[{"match":"retour (\\d+)","kind":"?")x"),
      unknown.npos)
      << unknown;
}

TEST(MeasuredProfile, ARefusalListsAnnotationsAndARule) {
  RankProfile profile(0);
  profile.annotation("my forward 3", 10, 10).call("aten::mm", 11, 1);
  const std::string said = refusal_of(profile);
  EXPECT_NE(said.find("'my forward 3' (1 like it)"), std::string::npos) << said;
  EXPECT_NE(said.find(R"x("kind":"F","microbatch":"$1")x"), std::string::npos) << said;
  EXPECT_EQ(said.find("'aten::mm'"), std::string::npos) << said;
}

TEST(MeasuredProfile, TimesAreRelativeToTheBaseOfTheFile) {
  std::string text = RankProfile(0).annotation("PP:0F0", 10, 10).call("aten::mm", 11, 8).text();
  text.insert(1, R"("baseTimeNanoseconds":1790857026000000000,)");
  const traces::ObservedTrace trace = traces::parse_trace({"rank0.json", text});
  EXPECT_GE(trace.ops.at(0).start, 1'790'857'026'000'010'000);
  EXPECT_LE(trace.ops.at(0).end, 1'790'857'026'000'020'000);
}

}  // namespace
}  // namespace bubblescope::tests

// Tests in which pipeline a rank is placed whose process groups have no names.
#include "traces/measured/unnamed_pipelines.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "sim/ir/error.h"
#include "tests/support/rank_profile.h"
#include "traces/measured/assemble_steps.h"

namespace bubblescope::tests {
namespace {

using Groups = std::vector<std::vector<int>>;

std::string list(const std::vector<int>& ranks) {
  std::string text;
  for (const int rank : ranks) text += (text.empty() ? "" : ", ") + std::to_string(rank);
  return "[" + text + "]";
}

/// The groups that contain the rank, as distributedInfo describes those of DeepSpeed.
std::string describe_groups(const Groups& groups, int rank) {
  std::string json;
  for (const std::vector<int>& ranks : groups)
    for (const int member : ranks)
      if (member == rank)
        json += std::string(json.empty() ? "" : ",") + R"({"pg_desc":"undefined","ranks":)" +
                list(ranks) + "}";
  return json;
}

/// Stage 0 of two: a forward of 100 us, and a backward of 200 us when its gradient has come.
RankProfile first_stage(int rank, const Groups& groups) {
  RankProfile profile(rank, 4);
  profile.groups(describe_groups(groups, rank))
      .annotation("ProfilerStep#3", 0, 1000)
      .forward_call(10, 100)
      .call("c10d::send", 111, 1)
      .call("c10d::recv_", 113, 1)
      .annotation("gloo:recv", 114, 386)
      .gradient(501, 199);
  return profile;
}
/// Stage 1: a forward when its input has come at 112 us, and a backward until 416 us.
RankProfile last_stage(int rank, const Groups& groups) {
  RankProfile profile(rank, 4);
  profile.groups(describe_groups(groups, rank))
      .annotation("ProfilerStep#3", 0, 1000)
      .call("c10d::recv_", 5, 1)
      .annotation("gloo:recv", 6, 106)
      .forward_call(113, 100)
      .gradient(216, 200)
      .call("c10d::send", 417, 2);
  return profile;
}

/// Two pipelines of two stages, as DeepSpeed numbers them: ranks 0 and 2, and ranks 1 and 3.
traces::ObservedTrace two_pipelines(const Groups& groups) {
  traces::ObservedTrace trace = first_stage(0, groups).read();
  for (const RankProfile& profile : std::vector<RankProfile>{
           first_stage(1, groups), last_stage(2, groups), last_stage(3, groups)})
    traces::append(trace, profile.read());
  return trace;
}

const Groups kOfDeepSpeed{{0, 1, 2, 3}, {0, 2}, {1, 3}, {0, 1}, {2, 3}, {0, 2},
                          {1, 3},       {0},    {1},    {2},    {3}};

TEST(UnnamedPipelines, AreTheGroupsWhoseMessagesFitThem) {
  const traces::ObservedTrace trace =
      traces::place_in_unnamed_pipelines(two_pipelines(kOfDeepSpeed));
  ASSERT_EQ(trace.recorders.size(), 4u);
  const std::vector<std::pair<int, int>> places{{0, 0}, {0, 1}, {1, 0}, {1, 1}};
  for (const traces::ObservedOp& observed : trace.ops) {
    const auto& [stage, replica] = places[static_cast<std::size_t>(observed.recorder)];
    EXPECT_EQ(observed.op.stage, stage) << to_string(observed.op);
    EXPECT_EQ(observed.replica, replica) << to_string(observed.op);
    EXPECT_EQ(recorder_of(trace, observed).rank, stage);
  }
  EXPECT_EQ(trace.recorders[3].peers, 2);
  EXPECT_EQ(trace.recorders[3].replicas, 2);
}

// Each computes for 300 us on two ranks within 690 us, from 10 to 700.
TEST(UnnamedPipelines, AreReplicasInTheReport) {
  const traces::AssembledSteps read = traces::assemble_steps(two_pipelines(kOfDeepSpeed));
  ASSERT_EQ(read.steps.size(), 2u);
  for (const traces::MeasuredStep& step : read.steps) {
    EXPECT_EQ(compute_makespan(step.timeline), 690'000);
    EXPECT_EQ(step.schedule->op_count(), 4u);
  }
}

// The lowest rank of [0, 1] and that of [2, 3] would have to receive nothing before forwards.
TEST(UnnamedPipelines, AreRefusedWhereNoGroupFits) {
  for (const Groups& groups : std::vector<Groups>{{}, {{0, 1}, {2, 3}}}) {
    try {
      traces::place_in_unnamed_pipelines(two_pipelines(groups));
      FAIL() << groups.size();
    } catch (const Error& error) {
      const std::string text = error.what();
      EXPECT_NE(text.find("the 4 ranks are 2 pipelines"), std::string::npos) << text;
      EXPECT_NE(text.find("ranks 0, 1 begin one and ranks 2, 3 end one"), std::string::npos)
          << text;
    }
  }
}

// Nothing of an evaluation shows which rank is the last, but the first receive nothing.
TEST(UnnamedPipelines, OfAnEvaluationBeginWithRanksThatReceiveNothing) {
  traces::ObservedTrace trace = two_pipelines(kOfDeepSpeed);
  std::erase_if(trace.ops, [](const traces::ObservedOp& observed) {
    return observed.op.kind == OpKind::kRecvBackward || gives_input_grad(observed.op.kind);
  });
  trace = traces::place_in_unnamed_pipelines(std::move(trace));
  EXPECT_EQ(trace.recorders[1].rank, 0);
  EXPECT_EQ(trace.recorders[2].rank, 1);
}

// NCCL's calls state the rank with which a message is exchanged.
TEST(UnnamedPipelines, AreTheRanksThatExchangeMessages) {
  traces::ObservedTrace trace = two_pipelines({});
  for (std::size_t at = 0; at < 4; ++at)
    trace.recorders[at].partners = {static_cast<int>(at < 2 ? at + 2 : at - 2)};
  trace = traces::place_in_unnamed_pipelines(std::move(trace));
  EXPECT_EQ(trace.recorders[1].rank, 0);
  EXPECT_EQ(trace.recorders[3].rank, 1);
  EXPECT_TRUE(trace.recorders[3].has_replica);
}

// Ranks of one pipeline have groups of neighbours, too, in some releases of DeepSpeed.
TEST(UnnamedPipelines, AreNotFoundInASinglePipeline) {
  traces::ObservedTrace trace = two_pipelines({{0, 1}, {1, 2}, {2, 3}, {0, 3}});
  for (traces::ObservedOp& observed : trace.ops)  // ranks 1 and 2 are in the middle
    if (observed.recorder == 1 || observed.recorder == 2) observed.op.kind = OpKind::kForward;
  const std::vector<traces::ObservedOp> before = trace.ops;
  trace = traces::place_in_unnamed_pipelines(std::move(trace));
  for (std::size_t at = 0; at < before.size(); ++at)
    EXPECT_EQ(trace.ops[at].op, before[at].op) << at;
  EXPECT_FALSE(trace.recorders[0].has_replica);
}

}  // namespace
}  // namespace bubblescope::tests

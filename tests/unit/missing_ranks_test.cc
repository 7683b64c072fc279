// Tests what is said where only some ranks of a job are given.
#include "traces/measured/missing_ranks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <regex>
#include <string>
#include <vector>

#include "sim/ir/error.h"
#include "tests/support/error_text.h"
#include "traces/files/trace_format.h"
#include "traces/measured/assemble_steps.h"
#include "traces/measured/rank_numbers.h"

namespace bubblescope::tests {
namespace {

/// The profile of one rank of a pipeline, which runs one forward and one backward.
std::string profile(int rank, int world_size, const std::string& groups = "") {
  const auto slice = [&](const char* kind, int start) {
    return R"({"ph":"X","cat":"user_annotation","name":"PP:)" + std::to_string(rank % 4) + kind +
           R"(0","pid":7,"tid":1,"ts":)" + std::to_string(start) + R"(,"dur":10})";
  };
  return R"({"schemaVersion":1,"host_name":"one","distributedInfo":{"rank":)" +
         std::to_string(rank) + R"(,"world_size":)" + std::to_string(world_size) +
         R"(,"pg_config":[)" + groups + R"(]},"traceEvents":[)" +
         slice("F", 10 * (rank % 4) + rank / 4) + "," +
         slice("B", 90 - 10 * (rank % 4) + rank / 4) + "]}";
}

/// The steps of some ranks of a job.
traces::AssembledSteps assemble(const std::vector<int>& ranks, int world_size,
                                const std::string& groups = "") {
  traces::ObservedTrace trace;
  for (const int rank : ranks)
    traces::append(trace, traces::parse_trace({"rank" + std::to_string(rank) + ".json",
                                               profile(rank, world_size, groups)}));
  return traces::assemble_steps(trace);
}

std::string refusal_or_fault(const std::vector<int>& ranks, int world_size,
                             const std::string& groups = "") {
  try {
    const traces::AssembledSteps read = assemble(ranks, world_size, groups);
    return read.remarks.faults.empty() ? "" : read.remarks.faults.front();
  } catch (const Error& error) {
    return error.what();
  }
}

TEST(MissingRanks, AreNotMissingWhereAllAreGiven) {
  EXPECT_EQ(refusal_or_fault({0, 1, 2, 3}, 4), "");
}

TEST(MissingRanks, AtTheEndAreNamed) {
  EXPECT_EQ(refusal_or_fault({0, 1}, 4),
            "2 of the 4 ranks of the job have no trace: 2, 3; the ops of the others, their order, "
            "times and busy times, are shown as recorded and under the ranks' own numbers; what "
            "they waited for is unknown, so there is no bubble, no cause of idle time, no slowdown "
            "and no prediction; give the traces of all ranks");
}

TEST(MissingRanks, InTheMiddleLeaveAReportOnTheOthers) {
  const std::string text = refusal_or_fault({0, 2}, 4);
  EXPECT_TRUE(text.starts_with("2 of the 4 ranks of the job have no trace: 1, 3; ")) << text;
  EXPECT_NE(text.find("shown as recorded"), std::string::npos) << text;
}

// Whichever ranks are missing, the others keep their numbers, and all orders are legal.
TEST(MissingRanks, LeaveTheNumbersOfTheOthers) {
  for (int given = 1; given < 15; ++given) {
    std::vector<int> ranks;
    for (int rank = 0; rank < 4; ++rank)
      if (given >> rank & 1) ranks.push_back(rank);
    const std::vector<traces::MeasuredStep> steps = assemble(ranks, 4).steps;
    ASSERT_EQ(steps.size(), 1u);
    const traces::MeasuredStep& step = steps.front();
    EXPECT_EQ(step.program.ranks, 4) << given;
    EXPECT_EQ(step.missing_ranks.size(), 4 - ranks.size());
    for (InstructionId id = 0; id < step.program.size(); ++id) {
      const Instruction& one = step.program.instructions[id];
      if (!is_compute(one.op.kind)) continue;
      const bool is_given = std::find(ranks.begin(), ranks.end(), one.rank) != ranks.end();
      EXPECT_EQ(one.op.stage, one.rank);
      EXPECT_EQ(step.timeline.end[id] - step.timeline.start[id], is_given ? 10'000 : 0);
    }
  }
}

TEST(MissingRanks, ShowByTheirStagesWhereNoFileCountsRanks) {
  const std::string text = refusal_or_fault({1, 3}, 0);
  EXPECT_TRUE(text.starts_with(
      "the traces that are given run stages 1, 3, and none runs 0, 2, so traces of ranks"))
      << text;
}

// A file may state fewer ranks than its own; no rank beyond the count is missing for it.
TEST(MissingRanks, AreNeverMoreThanTheJobHas) {
  const std::string text = refusal_or_fault({5}, 2);
  EXPECT_TRUE(text.starts_with("2 of the 2 ranks of the job have no trace: 0, 1; ")) << text;
}

// Rank 7 belongs to the second of two pipelines; the first is whole.
TEST(MissingRanks, OfOneReplicaLeaveAReportOnAnother) {
  const std::string groups =
      R"({"pg_desc":"mesh_pp","ranks":[0,1,2,3]},{"pg_desc":"mesh_pp","ranks":[4,5,6,7]})";
  EXPECT_EQ(refusal_or_fault({0, 1, 2, 3, 4, 5, 6, 7}, 8, groups), "");
  const traces::AssembledSteps read = assemble({0, 1, 2, 3, 4, 5, 6}, 8, groups);
  ASSERT_EQ(read.steps.size(), 1u);
  EXPECT_EQ(read.steps.front().replica, 0);
  EXPECT_EQ(read.remarks.faults, std::vector<std::string>{});
  ASSERT_EQ(read.remarks.doubts.size(), 1u);
  EXPECT_TRUE(read.remarks.doubts.front().starts_with(
      "1 of the 4 ranks of the pipeline that begins on rank 4 of the job has no trace: 3; this "
      "pipeline is left out of the report on the others: "))
      << read.remarks.doubts.front();
  EXPECT_TRUE(read.lacks_replicas);
}

// A second run of a job need not place its ranks on the same hosts.
TEST(MissingRanks, TracesOfTwoRunsAreRefusedWithTheirNames) {
  const std::string groups = R"({"pg_desc":"mesh_pp","ranks":[0,1]})";
  std::string again = profile(1, 2, groups);
  again.replace(again.find("\"one\""), 5, "\"two\"");
  again = std::regex_replace(again, std::regex("\"dur\":10"), "\"dur\":9");
  traces::ObservedTrace trace;
  traces::append(trace, traces::parse_trace({"rank0.json", profile(0, 2, groups)}));
  traces::append(trace, traces::parse_trace({"rank1.json", profile(1, 2, groups)}));
  traces::append(trace, traces::parse_trace({"again.json", again}));
  EXPECT_TRUE(fails_with([&] { traces::assemble_steps(trace); },
                         "rank1.json and again.json both record rank 1, and both have its "
                         "1F0 of the same step"));
}

// With neither whole there is nothing to report on.
TEST(MissingRanks, OfBothReplicasAreMissed) {
  const std::string groups =
      R"({"pg_desc":"mesh_pp","ranks":[0,1,2,3]},{"pg_desc":"mesh_pp","ranks":[4,5,6,7]})";
  EXPECT_TRUE(
      refusal_or_fault({0, 1, 2, 4, 5, 6}, 8, groups)
          .starts_with("1 of the 4 ranks of the pipeline that begins on rank 0 of the job has no "
                       "trace: 3; "));
}

/// The first reservation about the traces of some ranks of two pipelines of four.
std::string doubt_about(const std::vector<int>& ranks, const std::string& further_groups) {
  const std::string groups =
      R"({"pg_desc":"mesh_pp","ranks":[0,1,2,3]},{"pg_desc":"mesh_pp","ranks":[4,5,6,7]})" +
      further_groups;
  const traces::AssembledSteps read = assemble(ranks, 8, groups);
  EXPECT_TRUE(read.remarks.faults.empty());
  EXPECT_EQ(read.lacks_replicas, !read.remarks.doubts.empty());
  return read.remarks.doubts.empty() ? "" : read.remarks.doubts.front();
}

const std::string kDataGroups =
    R"(,{"pg_desc":"mesh_dp","ranks":[0,4]},{"pg_desc":"mesh_dp","ranks":[1,5]})"
    R"(,{"pg_desc":"mesh_dp","ranks":[2,6]},{"pg_desc":"mesh_dp","ranks":[3,7]})";

// A whole pipeline of two is given: what it waits for in reductions of gradients is not.
TEST(MissingRanks, OfWholeReplicasAreMissed) {
  EXPECT_EQ(doubt_about({0, 1, 2, 3, 4, 5, 6, 7}, kDataGroups), "");
  const std::string text = doubt_about({4, 5, 6, 7}, kDataGroups);
  EXPECT_TRUE(text.starts_with("1 of the 2 data-parallel replicas of the job has no trace: 0; "))
      << text;
}

// The other four ranks may be replicas or tensor-parallel peers; no group says which.
TEST(MissingRanks, OutsideOfThePipelineMayBeReplicas) {
  EXPECT_EQ(doubt_about({0, 1, 2, 3, 4, 5, 6, 7}, ""), "");
  EXPECT_TRUE(doubt_about({0, 1, 2, 3}, "")
                  .starts_with("the job has 8 ranks, of which those of 1 pipeline of 4 are given"));
  EXPECT_EQ(
      doubt_about({0, 1, 2, 3},
                  R"(,{"pg_desc":"mesh_tp","ranks":[0,4]},{"pg_desc":"mesh_tp","ranks":[1,5]})"
                  R"(,{"pg_desc":"mesh_tp","ranks":[2,6]},{"pg_desc":"mesh_tp","ranks":[3,7]})"),
      "");
}

// Processes 9 and 8 run the stages of a pipeline, and processes 7 and 6 those of its replica.
TEST(RankNumbers, FollowTheStagesOfReplicasInProcessesOfAnyOrder) {
  traces::ObservedTrace trace;
  for (std::int32_t at = 0; at < 4; ++at) {
    traces::Recorder& recorder = trace.recorders.emplace_back();
    recorder.rank = 9 - at;
    recorder.is_process = true;
    traces::ObservedOp& observed = trace.ops.emplace_back();
    observed.op.kind = OpKind::kForward;
    observed.op.stage = at % 2;
    observed.recorder = at;
    observed.replica = at / 2;
  }
  EXPECT_EQ(traces::number_ranks(trace).of_recorder, (std::vector<std::int32_t>{0, 1, 0, 1}));
}

}  // namespace
}  // namespace bubblescope::tests

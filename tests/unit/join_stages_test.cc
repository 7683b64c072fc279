// Tests costs of stages that run together on one rank.
#include "sim/model/join_stages.h"

#include <gtest/gtest.h>

#include "traces/costs/cost_file.h"
#include "traces/costs/cost_file_writer.h"

namespace bubblescope::tests {
namespace {

using Groups = std::vector<std::vector<std::int32_t>>;
using Names = std::vector<std::string>;

JoinedTable join(const std::string& members, const Groups& groups) {
  return join_stages(
      traces::parse_cost_file("{\"format\": \"bubblescope-costs/1\", " + members + "}", "f.json"),
      groups);
}

TEST(JoinStages, AddsUpWorkUpdatesAndBytesInEveryReplica) {
  const auto [table, left_out] = join(
      R"("stages": [{"forward": 1, "input_grad": 2, "weight_grad": 3, "optimizer": 4, "weight_bytes": 5,
                     "activation_bytes": {"saved": 60, "released_by_input_grad": 20}},
                    {"forward": 10, "input_grad": 20, "weight_grad": 30, "optimizer": 40, "weight_bytes": 50,
                     "activation_bytes": {"saved": 6}}],
         "replicas": [{"stages": [{"forward": 1, "backward": 2}, {"forward": 3, "backward": 4}]}],
         "memory": {"static_bytes": [7, 70]})",
      {{0, 1}});
  ASSERT_EQ(table.stages.size(), 1u);
  const StageEntry& stage = table.stages[0];
  EXPECT_EQ(stage.forward, 11'000'000);
  EXPECT_EQ(stage.input_grad, 22'000'000);
  EXPECT_EQ(stage.weight_grad, 33'000'000);
  EXPECT_EQ(stage.backward, std::nullopt);  // that of the halves
  EXPECT_EQ(stage.update.optimizer, 44'000'000);
  EXPECT_EQ(stage.weight_bytes, 55);
  EXPECT_EQ(stage.activation_bytes->forward, 66);
  EXPECT_EQ(stage.activation_bytes->input_grad, -20);
  EXPECT_EQ(stage.activation_bytes->weight_grad, -46);
  EXPECT_EQ(table.static_bytes, std::vector<Bytes>{77});
  ASSERT_EQ(table.replicas.size(), 1u);
  EXPECT_EQ(table.replicas[0][0].backward, 6'000'000);
  EXPECT_EQ(left_out, Names{});
}

TEST(JoinStages, NeverHalvesAWholeBackward) {
  const auto [table, left_out] = join(
      R"("stages": [{"forward": 1, "backward": 2}, {"forward": 1, "input_grad": 2, "weight_grad": 3}])",
      {{0, 1}});
  EXPECT_EQ(table.stages[0].backward, 7'000'000);
  EXPECT_EQ(table.stages[0].input_grad, std::nullopt);
  EXPECT_EQ(left_out, Names{"input and weight gradients next to whole backwards"});
}

TEST(JoinStages, TakesTheMessagesBehindTheLastStage) {
  const auto [table, left_out] = join(
      R"("forward": 1, "message": {"latency": [1, 2, 3]}, "outside_pipeline": 4, "noise": {"jitter": 0.1})",
      {{0, 1}, {2}});
  EXPECT_EQ(table.stages[0].message_latency, 2'000'000);
  EXPECT_EQ(table.stages[1].message_latency, 3'000'000);
  EXPECT_EQ(table.outside_pipeline, 4'000'000);
  ASSERT_TRUE(table.noise);
  EXPECT_DOUBLE_EQ(table.noise->op_jitter, 0.1);
  EXPECT_EQ(left_out, Names{});
  const CostTable again = traces::parse_cost_file(traces::write_cost_file(table), "again.json");
  EXPECT_EQ(again.stages[0].message_latency, 2'000'000);
}

TEST(JoinStages, NamesWhatHasNoSum) {
  const std::string members =
      R"("stages": [{"forward": 1, "backward": 2, "overlapped_pair": 3, "contended": {"forward": [2]}},
                    {"forward": 1, "backward": 2, "overlapped_pair": 3, "contended": {"forward": [2]}}],
         "links": [{"from": 0, "to": 1, "latency": 1}])";
  const JoinedTable joined = join(members, {{0, 1}});
  EXPECT_EQ(joined.left_out, (Names{"links", "contention", "overlapped pairs"}));
  EXPECT_TRUE(joined.table.links.empty());
  const JoinedTable kept = join(members, {{0}, {1}});
  EXPECT_EQ(kept.left_out, Names{});
  EXPECT_EQ(kept.table.links.size(), 1u);
  EXPECT_TRUE(kept.table.stages[0].contended);
}

// Only one replica has a time for overlapped pairs.
TEST(JoinStages, NamesWhatHasNoSumInAReplica) {
  const JoinedTable joined = join(
      R"("stages": [{"forward": 1, "backward": 2}, {"forward": 1, "backward": 2}, {"forward": 1, "backward": 2}],
         "replicas": [{"stages": [{"forward": 1, "backward": 2}, {"forward": 1, "backward": 2},
                                  {"forward": 1, "backward": 2, "overlapped_pair": 3}]}])",
      {{0, 1}, {2}});
  EXPECT_EQ(joined.left_out, Names{"overlapped pairs"});
  EXPECT_FALSE(joined.table.replicas[0][1].overlapped_pair);
}

TEST(JoinStages, LeavesOutWhatCostFilesCannotHold) {
  const auto [table, left_out] = join(
      R"("stages": [{"forward": {"per_microbatch": [1, 3]}, "message_bytes": 8}],
         "cluster": {"ranks_per_node": 1})",
      {{0}});
  EXPECT_EQ(table.stages[0].forward, 2'000'000);
  EXPECT_EQ(left_out,
            (Names{"differences between micro-batches, whose means stay", "the cluster"}));
  // Without the cluster nothing says how long bytes take.
  EXPECT_NO_THROW(traces::parse_cost_file(traces::write_cost_file(table), "again.json"));
}

}  // namespace
}  // namespace bubblescope::tests

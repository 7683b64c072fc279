// Groups of micro-batches that interleaved schedules take where the usual ones delay every rank.
#include "sim/model/full_groups.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>

#include "sim/model/schedule_def.h"
#include "sim/model/schedule_refusal.h"
#include "sim/predict/predict.h"
#include "tests/support/command.h"

namespace bubblescope::tests {
namespace {

using Json = nlohmann::json;

Shape shape_of(std::int32_t ranks, std::int32_t chunks, std::int32_t microbatches) {
  Shape shape;
  shape.ranks = ranks;
  shape.chunks = chunks;
  shape.microbatches = microbatches;
  return shape;
}

std::optional<std::int32_t> groups_of(const char* schedule, const Shape& shape,
                                      Profile profile = Profile::kNone) {
  return find_full_groups(find_schedule(schedule), shape, profile);
}

Nanos step_of(const Shape& shape, Nanos message) {
  ScheduleRequest request;
  request.shape = shape;
  UniformCosts costs;
  costs.cost.forward = 12'000'000;
  costs.cost.backward = 24'000'000;
  costs.cost.message = message;
  Config config;
  config.costs = costs;
  return predict(build_schedule(find_schedule("interleaved"), request), config).report.makespan;
}

// 17 = 2 x 8 + 1: groups of 9 leave 8. 20: 9 leaves 2, 10 nothing. 24 = 3 x 8.
TEST(FullGroups, AreTheSmallestThatLeaveNoShortGroup) {
  EXPECT_EQ(groups_of("interleaved", shape_of(8, 4, 17)), 9);
  EXPECT_EQ(groups_of("interleaved", shape_of(8, 4, 20)), 10);
  EXPECT_EQ(groups_of("interleaved", shape_of(8, 4, 24)), std::nullopt);
  EXPECT_EQ(groups_of("interleaved", shape_of(8, 4, 9)), 9);
  EXPECT_EQ(groups_of("interleaved", shape_of(8, 4, 5)), std::nullopt) << "one group";
  EXPECT_EQ(groups_of("interleaved", shape_of(8, 1, 20)), std::nullopt) << "no loop";
  EXPECT_EQ(groups_of("interleaved-zb", shape_of(8, 4, 20)), std::nullopt);
  EXPECT_EQ(groups_of("interleaved", shape_of(8, 4, 20), Profile::kMegatron), 10);
  EXPECT_EQ(groups_of("interleaved", shape_of(8, 4, 20), Profile::kPytorch), std::nullopt);
}

TEST(FullGroups, AreAcceptedByMegatronAndNeverSlower) {
  for (std::int32_t ranks = 2; ranks <= 5; ++ranks)
    for (std::int32_t chunks = 2; chunks <= 3; ++chunks)
      for (std::int32_t microbatches = 1; microbatches <= 4 * ranks; ++microbatches) {
        const Shape shape = shape_of(ranks, chunks, microbatches);
        const auto groups = groups_of("interleaved", shape);
        if (!groups) continue;
        Shape full = shape;
        full.group_size = groups;
        ScheduleRequest request;
        request.shape = full;
        request.profile = Profile::kMegatron;
        EXPECT_TRUE(refuse_schedule(find_schedule("interleaved"), request).empty())
            << ranks << " " << chunks << " " << microbatches;
        for (const Nanos message : {0, 500'000})
          EXPECT_LE(step_of(full, message), step_of(shape, message))
              << ranks << " " << chunks << " " << microbatches;
      }
}

// m = 20 on 8 ranks with 4 chunks takes (mv + p-1) (F + B) / v = 87 x 3 = 261 ms in groups of 10.
TEST(FullGroups, ArePlannedAndNamedInOtherCommands) {
  const std::string costs = " --pp 8 --vpp 4 -m 20 --f 4 --b 8";
  const std::string plan = "plan --schedules interleaved" + costs;
  const Json plans = read_report(plan);
  EXPECT_EQ(plans["plans"][0]["step_ns"], 261'000'000);
  EXPECT_EQ(plans["plans"][0]["microbatch_group_size"], 10);
  const std::string csv = run_command(plan + " --format csv").output;
  EXPECT_NE(csv.find(",microbatch_group_size\n"), std::string::npos) << csv;
  EXPECT_TRUE(csv.ends_with(",10\n")) << csv;
  const std::string messages = run_with_messages("simulate interleaved" + costs).output;
  EXPECT_NE(messages.find("20 micro-batches in groups of 8 leave a last group of 4, which is fewer "
                          "than the 8 ranks and delays them all; --microbatch-group-size 10 does "
                          "not\n"),
            std::string::npos)
      << messages;
  const std::string full =
      run_with_messages("simulate interleaved --microbatch-group-size 10" + costs).output;
  EXPECT_EQ(full.find("last group"), std::string::npos) << full;
}

TEST(FullGroups, AreWrittenForMegatron) {
  const std::string text =
      run_command(
          "plan --model llama3-8b --gpus 16 --global-batch-size 24 --tp 1 --pp 4 --vpp 2 "
          "--micro-batch-size 1 --schedules interleaved --format megatron")
          .output;
  EXPECT_NE(text.find(" --microbatch-group-size-per-virtual-pipeline-stage 6 "), std::string::npos)
      << text;
}

}  // namespace
}  // namespace bubblescope::tests

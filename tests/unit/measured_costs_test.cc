// Tests the entries of cost files that come from measured steps.
#include <gtest/gtest.h>

#include "sim/ir/error.h"
#include "sim/model/schedule_def.h"
#include "sim/predict/predict.h"
#include "traces/costs/cost_file.h"
#include "traces/costs/cost_file_writer.h"

namespace bubblescope::tests {
namespace {

CostTable measured_table() {
  CostTable table;
  StageEntry stage;
  stage.forward = 1'000'003;
  stage.backward = 2'000'001;
  table.stages = {stage, stage};
  StageEntry slow = stage;
  slow.forward = 3'000'000;
  table.replicas = {{stage, stage}, {stage, slow}};
  table.late_starts = {4'000'000, 0};
  table.message.latency = 12'345;
  Noise noise;
  noise.op_jitter = 0.0125;
  noise.step_jitter = 0.25;
  noise.stragglers = {0.001, 3, false};
  table.noise = noise;
  table.outside_pipeline = 200'000'000;
  table.divisible = true;
  table.ends = Ends::kExtraWork;
  return table;
}

ValidSchedule build(const std::string& name) {
  ScheduleRequest request;
  request.shape.ranks = 2;
  request.shape.microbatches = 4;
  return build_schedule(find_schedule(name), request);
}

TEST(MeasuredCosts, ReadBackAsTheyWereWritten) {
  const CostTable table = measured_table();
  const CostTable read = traces::parse_cost_file(traces::write_cost_file(table), "costs.json");
  ASSERT_EQ(read.stages.size(), 2u);
  EXPECT_EQ(read.stages[1].forward, 1'000'003);
  EXPECT_EQ(read.stages[1].backward, 2'000'001);
  EXPECT_FALSE(read.stages[1].input_grad);
  ASSERT_EQ(read.replicas.size(), 2u);
  EXPECT_EQ(read.replicas[1][1].forward, 3'000'000);
  EXPECT_EQ(read.late_start(0), 4'000'000);
  EXPECT_EQ(read.late_start(1), 0);
  EXPECT_EQ(read.message.latency, 12'345);
  ASSERT_TRUE(read.noise);
  EXPECT_DOUBLE_EQ(read.noise->op_jitter, 0.0125);
  EXPECT_DOUBLE_EQ(read.noise->step_jitter, 0.25);
  EXPECT_EQ(read.noise->rank_jitter, 0);
  EXPECT_DOUBLE_EQ(read.noise->stragglers.probability, 0.001);
  EXPECT_DOUBLE_EQ(read.noise->stragglers.factor, 3);
  EXPECT_EQ(read.outside_pipeline, 200'000'000);
  EXPECT_TRUE(read.divisible);
  EXPECT_EQ(read.ends, Ends::kExtraWork);
}

std::string refusal(const std::string& entry) {
  try {
    traces::parse_cost_file(
        R"({"format":"bubblescope-costs/1","stages":[{"forward":1,"backward":2}],)" + entry + "}",
        "costs.json");
  } catch (const Error& refused) {
    return refused.what();
  }
  return "";
}

TEST(MeasuredCosts, FaultsAreNamedWithTheirPlace) {
  EXPECT_NE(refusal(R"("noise":{"jitter":1.5})").find("/noise/jitter: must be a fraction"),
            std::string::npos);
  EXPECT_NE(refusal(R"("noise":{"jiter":0.1})").find("did you mean 'jitter'"), std::string::npos);
  EXPECT_NE(refusal(R"("noise":{"shape":"flat"})").find("/noise/shape"), std::string::npos);
  EXPECT_NE(refusal(R"("noise":{"straggler":{"probability":0.1,"factor":5000}})").find("1000"),
            std::string::npos);
  EXPECT_NE(refusal(R"("heavier_ends":true)").find("/heavier_ends: says how stages are cut"),
            std::string::npos);
  EXPECT_NE(refusal(R"("ends":"extra-work")").find("/ends: says how stages are cut"),
            std::string::npos);
  EXPECT_NE(refusal(R"("divisible":true,"ends":"head")").find("/ends: must be \"more-layers\""),
            std::string::npos);
  EXPECT_NE(refusal(R"("divisible":true,"ends":"more-layers","heavier_ends":true)")
                .find("/heavier_ends: is what 'ends' says"),
            std::string::npos);
  EXPECT_NE(refusal(R"("replicas":[])").find("/replicas: is empty"), std::string::npos);
  EXPECT_NE(refusal(R"("replicas":[{"stages":[{"forward":1},{"forward":1}]}])")
                .find("must have as many entries as /stages"),
            std::string::npos);
}

// 1F1B, p = 2, m = 4: (m + p - 1)(F + B) with equal stages; the slow replica's last stage takes
// 5 ms per micro-batch, so its step is 1.000003 + 4 * 5.000001 + 2.000001 ms and two messages.
TEST(MeasuredCosts, TheSlowestReplicaCounts) {
  CostTable table = measured_table();
  table.noise.reset();
  Config config;
  config.costs = table;
  const Prediction step = predict(build("1f1b"), config);
  EXPECT_EQ(step.report.makespan, 1'000'003 + 4 * 5'000'001 + 2'000'001 + 2 * 12'345);
  ASSERT_TRUE(step.report.job);
  EXPECT_EQ(step.report.job->replicas, 2);
  EXPECT_EQ(step.report.job->step, step.report.makespan + 200'000'000);
  EXPECT_FALSE(step.report.noise);
}

// With equal replicas each step ends with the slower one: at no quantile earlier than one replica.
TEST(MeasuredCosts, NoisyReplicasAreDrawnApartAndTheSlowestCounts) {
  CostTable table = measured_table();
  table.noise->step_jitter = 0;
  table.noise->op_jitter = 0.1;
  table.replicas.clear();
  Config config;
  config.costs = table;
  const BubbleReport one = predict(build("1f1b"), config).report;
  table.replicas = {table.stages, table.stages};
  config.costs = table;
  const BubbleReport two = predict(build("1f1b"), config).report;
  ASSERT_TRUE(one.noise && two.noise);
  EXPECT_GT(two.noise->mean, one.noise->mean);
  ASSERT_EQ(one.noise->makespans.size(), two.noise->makespans.size());
  for (std::size_t at = 0; at < one.noise->makespans.size(); ++at)
    EXPECT_GE(two.noise->makespans[at], one.noise->makespans[at]);
  EXPECT_NE(one.noise->makespans, two.noise->makespans);
}

// A step's factor is common to all replicas: two equal ones take exactly as long as one.
TEST(MeasuredCosts, ReplicasShareTheJitterOfSteps) {
  CostTable table = measured_table();
  table.noise = Noise{};
  table.noise->step_jitter = 0.1;
  table.replicas.clear();
  Config config;
  config.costs = table;
  const BubbleReport one = predict(build("1f1b"), config).report;
  table.replicas = {table.stages, table.stages};
  config.costs = table;
  EXPECT_EQ(predict(build("1f1b"), config).report.noise->makespans, one.noise->makespans);
}

TEST(MeasuredCosts, NoiseOfTheConfigReplacesThatOfTheFile) {
  Config config;
  CostTable table = measured_table();
  table.replicas.clear();
  config.costs = table;
  config.scenarios.noise.op_jitter = 1e-9;
  const BubbleReport report = predict(build("1f1b"), config).report;
  EXPECT_NEAR(report.noise->mean, static_cast<double>(report.makespan), 10);
}

}  // namespace
}  // namespace bubblescope::tests

// The steps that are predicted from the ends of their ops, and those that are left to the whole
// way.
#include "sim/predict/predict_plain.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "sim/model/schedule_def.h"
#include "sim/predict/predict.h"

namespace bubblescope::tests {
namespace {

ValidSchedule make_1f1b() {
  ScheduleRequest request;
  request.shape = {2, 1, 4, 1, {}};
  return require_valid(build_order(find_schedule("1f1b"), request));
}

/// Two stages, the first of which takes another time for every micro-batch.
CostTable make_table() {
  CostTable table;
  table.file = "costs.json";
  table.stages.resize(2);
  for (StageEntry& stage : table.stages) {
    stage.forward = 1'000;
    stage.backward = 2'000;
  }
  table.lists.resize(2);
  CostList forward;
  forward.key = CostKey::kForward;
  forward.where = "/stages/0/forward";
  forward.microbatches = 4;
  forward.values = {700, 1'100, 900, 1'300};
  table.lists[0].push_back(forward);
  return table;
}

Config make_config(CostTable table) {
  Config config;
  config.costs = std::move(table);
  config.slack = Slack::kSkip;
  return config;
}

bool is_taken(const Config& config) {
  const auto none = [](const BubbleReport&) { return std::vector<std::int32_t>{}; };
  return std::holds_alternative<Prediction>(predict_plain_report(make_1f1b(), config, none));
}

TEST(PredictPlainReport, IsThatOfTheWholeStep) {
  const Config config = make_config(make_table());
  const auto none = [](const BubbleReport&) { return std::vector<std::int32_t>{}; };
  const auto predicted = predict_plain_report(make_1f1b(), config, none);
  const auto* const plain = std::get_if<Prediction>(&predicted);
  ASSERT_NE(plain, nullptr);
  const Prediction whole = predict(make_1f1b(), config);
  EXPECT_EQ(plain->report.makespan, whole.report.makespan);
  EXPECT_EQ(plain->report.lower_bound, whole.report.lower_bound);
  EXPECT_EQ(plain->report.critical_path.size(), whole.report.critical_path.size());
  EXPECT_EQ(plain->report.ranks[0].idle_by_cause, whole.report.ranks[0].idle_by_cause);
  EXPECT_EQ(plain->notes.size(), whole.notes.size());
}

TEST(PredictPlainReport, LeavesAllElseToTheWholeWay) {
  ASSERT_TRUE(is_taken(make_config(make_table())));
  struct Condition {
    std::string name;
    std::function<void(Config&, CostTable&)> set;
  };
  const std::vector<Condition> conditions = {
      {"slack", [](Config& config, CostTable&) { config.slack = Slack::kFind; }},
      {"a brief report", [](Config& config, CostTable&) { config.detail = Detail::kBrief; }},
      {"noise", [](Config& config, CostTable&) { config.scenarios.noise.op_jitter = 0.1; }},
      {"noise of the costs",
       [](Config&, CostTable& table) { table.noise.emplace().op_jitter = 0.1; }},
      {"sensitivity", [](Config& config, CostTable&) { config.scenarios.sensitivity = true; }},
      {"replicas", [](Config&, CostTable& table) { table.replicas = {table.stages}; }},
      {"time outside", [](Config&, CostTable& table) { table.outside_pipeline = 5; }},
      {"an op gap", [](Config&, CostTable& table) { table.op_gap = 5; }},
      {"messages that wait",
       [](Config& config, CostTable&) { config.lower.mode = P2pMode::kEager; }},
      {"a send budget", [](Config& config, CostTable&) { config.lower.send_budget = 2; }},
      {"arrivals",
       [](Config& config, CostTable&) {
         config.arrivals = {0, 5, 10, 15};
       }},
      {"a policy", [](Config& config, CostTable&) { config.policy.emplace(); }},
      {"an optimizer",
       [](Config& config, CostTable&) { config.lower.update.optimizer = OptimizerMode::kLocal; }},
      {"shared links",
       [](Config&, CostTable& table) { table.cluster.emplace().ranks_per_node = 1; }},
      {"a slow rank",
       [](Config& config, CostTable&) {
         config.slow_ranks = {{0, 2.0}};
       }},
  };
  for (const Condition& condition : conditions) {
    CostTable table = make_table();
    Config config = make_config({});
    condition.set(config, table);
    config.costs = std::move(table);
    EXPECT_FALSE(is_taken(config)) << condition.name;
  }
}

}  // namespace
}  // namespace bubblescope::tests

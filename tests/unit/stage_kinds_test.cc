// Costs of the kinds of stages price schedules with any number of them.
#include "sim/model/stage_kinds.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "sim/ir/error.h"
#include "sim/model/cost_table.h"
#include "sim/model/schedule_def.h"
#include "tools/commands/calibrate_costs.h"
#include "traces/costs/cost_file.h"

namespace bubblescope::tests {
namespace {

using Json = nlohmann::ordered_json;

const std::string kFile = R"({"format": "bubblescope-costs/1",
  "stages": [{"forward": 11, "backward": 21}, {"forward": 12, "backward": 22}],
  "stage_kinds": {"first": {"forward": 3, "input_grad": 4, "weight_grad": 5},
                  "middle": {"forward": 1, "input_grad": 2, "weight_grad": 3},
                  "last": {"forward": 6, "input_grad": 7, "weight_grad": 8}}})";

Schedule build(const std::string& name, std::int32_t ranks, std::int32_t chunks) {
  return build_schedule(find_schedule(name), {{ranks, chunks, 4, 1, {}}, {}, {}});
}

std::vector<Nanos> forwards(const CostTable& table) {
  std::vector<Nanos> times;
  for (const StageEntry& stage : table.stages) times.push_back(stage.forward / 1'000'000);
  return times;
}

TEST(StageKinds, PriceSchedulesWithOtherNumbersOfStages) {
  const CostTable table = traces::parse_cost_file(kFile, "costs.json");
  EXPECT_EQ(forwards(fit_stages(table, build("1f1b", 2, 1))), (std::vector<Nanos>{11, 12}));
  EXPECT_EQ(forwards(fit_stages(table, build("zb-v", 2, 2))), (std::vector<Nanos>{3, 1, 1, 6}));
  EXPECT_EQ(forwards(fit_stages(table, build("1f1b", 3, 1))), (std::vector<Nanos>{3, 1, 6}));
  // A second pipeline costs what the first one costs.
  EXPECT_EQ(forwards(fit_stages(table, build("dualpipe", 2, 1))), (std::vector<Nanos>{11, 12}));
}

TEST(StageKinds, WithoutThemAnotherNumberOfStagesIsRefused) {
  Json file = Json::parse(kFile);
  file.erase("stage_kinds");
  const CostTable table = traces::parse_cost_file(file.dump(), "costs.json");
  const Schedule schedule = build("zb-v", 2, 2);
  EXPECT_THROW(make_cost_model(fit_stages(table, schedule), schedule), Error);
}

TEST(StageKinds, AllThreeAreNeeded) {
  Json file = Json::parse(kFile);
  file["stage_kinds"].erase("middle");
  EXPECT_THROW(traces::parse_cost_file(file.dump(), "costs.json"), Error);
}

TEST(StageKinds, TheMiddleIsTheMeanOfWhatAllStagesBetweenHave) {
  const Json stages = Json::parse(R"([
    {"forward": "10ns", "activation_bytes": {"saved": 8}, "contended": {"forward": ["12ns"]}},
    {"forward": "20ns", "activation_bytes": {"saved": 4}, "contended": {"forward": ["22ns"]},
     "optimizer": "1ns"},
    {"forward": "30ns", "activation_bytes": {"saved": 6}, "contended": {"forward": ["36ns"]}},
    {"forward": "90ns", "activation_bytes": {"saved": 9}, "contended": {"forward": ["92ns"]}}])");
  const Json kinds = tools::write_stage_kinds(stages);
  EXPECT_EQ(kinds["first"], stages[0]);
  EXPECT_EQ(kinds["middle"], Json::parse(R"({"forward": "25ns", "activation_bytes": {"saved": 5},
                                             "contended": {"forward": ["29ns"]}})"));
  EXPECT_EQ(kinds["last"], stages[3]);
  EXPECT_TRUE(tools::write_stage_kinds(Json::parse("[{}, {}]")).is_null());
}

}  // namespace
}  // namespace bubblescope::tests

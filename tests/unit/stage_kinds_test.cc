// Costs of the kinds of stages price schedules with any number of them.
#include "sim/model/stage_kinds.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "sim/ir/error.h"
#include "sim/model/cost_table.h"
#include "sim/model/schedule_def.h"
#include "tests/support/error_text.h"
#include "traces/costs/cost_file.h"
#include "traces/costs/cost_file_writer.h"

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
  EXPECT_EQ(error_of([&] { make_cost_model(fit_stages(table, schedule), schedule); }),
            "costs.json: /stages: has 2 entries, but zb-v has 4 stages (2 ranks x 2 chunks); "
            "give one entry per stage");
}

TEST(StageKinds, AllThreeAreNeeded) {
  Json file = Json::parse(kFile);
  file["stage_kinds"].erase("middle");
  EXPECT_EQ(error_of([&] { traces::parse_cost_file(file.dump(), "costs.json"); }),
            "costs.json: /stage_kinds: lacks the key 'middle'; add it");
}

TEST(StageKinds, TheMiddleIsTheMeanOfWhatAllStagesBetweenHave) {
  const CostTable table = traces::parse_cost_file(
      R"({"format": "bubblescope-costs/1", "stages": [
    {"forward": "10ns", "activation_bytes": {"saved": 8}, "contended": {"forward": ["12ns"]}},
    {"forward": "20ns", "activation_bytes": {"saved": 4}, "contended": {"forward": ["22ns"]},
     "backward": "9ns", "optimizer": "2ns"},
    {"forward": "30ns", "activation_bytes": {"saved": 6}, "contended": {"forward": ["36ns"]}},
    {"forward": "90ns", "activation_bytes": {"saved": 9}, "contended": {"forward": ["92ns"]}}]})",
      "costs.json");
  const std::vector<StageEntry> kinds = make_stage_kinds(table.stages);
  ASSERT_EQ(kinds.size(), 3u);
  EXPECT_EQ(kinds[0].forward, 10);
  EXPECT_EQ(kinds[2].forward, 90);
  const StageEntry& middle = kinds[1];
  EXPECT_EQ(middle.forward, 25);
  EXPECT_FALSE(middle.backward);
  EXPECT_EQ(middle.update.optimizer, 1);
  EXPECT_EQ(middle.activation_bytes->forward, 5);
  EXPECT_EQ(middle.activation_bytes->weight_grad, -5);
  EXPECT_EQ((*middle.contended)[0], (std::vector<Nanos>{29}));
  EXPECT_TRUE(make_stage_kinds({table.stages.begin(), table.stages.begin() + 2}).empty());
}

TEST(StageKinds, AreWrittenAsTheyAreRead) {
  const CostTable table = traces::parse_cost_file(kFile, "costs.json");
  const CostTable again = traces::parse_cost_file(traces::write_cost_file(table), "again.json");
  ASSERT_EQ(again.stage_kinds.size(), 3u);
  for (std::size_t kind = 0; kind < 3; ++kind) {
    EXPECT_EQ(again.stage_kinds[kind].forward, table.stage_kinds[kind].forward);
    EXPECT_EQ(again.stage_kinds[kind].weight_grad, table.stage_kinds[kind].weight_grad);
  }
}

}  // namespace
}  // namespace bubblescope::tests

// Parts of ops in reports and pictures.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "sim/predict/predict.h"
#include "tests/support/recorded_step.h"
#include "traces/costs/cost_file.h"
#include "traces/reports/parts_text.h"
#include "traces/reports/report_csv.h"
#include "traces/reports/report_json.h"
#include "traces/schedules/text_schedule.h"

namespace bubblescope::tests {
namespace {

using Json = nlohmann::json;

/// Three parts forward, two backward. The pair hides the dispatch of F, but not that of B.
constexpr const char* kCosts =
    R"({"format":"bubblescope-costs/1",)"
    R"("forward":{"parts":[{"name":"attn","time":"10ms"},)"
    R"({"name":"dispatch","lane":"expert","time":"6ms"},{"name":"mlp","time":"20ms"}]},)"
    R"("backward":{"parts":[{"name":"mlp","time":"30ms"},)"
    R"({"name":"dispatch","lane":"expert","time":"8ms"}]},)"
    R"("overlapped_pair":{"order":["F.attn","F.dispatch","B.mlp","F.mlp","|","B.dispatch"]},)"
    R"("part_contention":[{"lane":"compute","beside":"expert","slowdown":1.5}]})";

/// Two ops and a pair: F takes 36 ms, B 38, the pair 10 + 30 + 20 + 8, and 2 ms for contention.
RecordedStep predicted() {
  Config config;
  config.costs = traces::parse_cost_file(kCosts, "costs.json");
  Prediction step = predict(
      require_valid(traces::parse_schedule_text("0F0 (0F1;0B0)OVERLAP_F_B 0B1", "pair")), config);
  return {std::move(step.schedule), std::move(step.program), std::move(step.timeline),
          std::move(step.report)};
}

TEST(PartsOutput, NamesTheCollectivesThatOpsWaitFor) {
  const RecordedStep step = predicted();
  EXPECT_EQ(step.report.makespan, 36'000'000 + 70'000'000 + 38'000'000);
  EXPECT_EQ(traces::write_parts_text(step.report),
            "exposed      22 ms of the ops of rank 0: B.dispatch 16 ms, F.dispatch 6 ms\n"
            "contention   the parts of rank 0 take 2 ms longer than alone\n"
            "pair         70 ms, 8 ms of it exposed: B.dispatch 8 ms\n");
}

TEST(PartsOutput, HasThemInJsonAndCsv) {
  const RecordedStep step = predicted();
  const Json json =
      Json::parse(traces::write_report_json(step.report, step.program, step.timeline, {}));
  ASSERT_EQ(json["parts"].size(), 5u);
  EXPECT_EQ(json["parts"][1], Json::parse(R"({"part":"F.dispatch","lane":"expert",)"
                                          R"("exposed_ns":[6000000],"slowed_ns":[0]})"));
  EXPECT_EQ(json["parts"][3]["part"], "B.mlp");
  EXPECT_EQ(json["parts"][3]["slowed_ns"], Json::parse("[2000000]"));
  const std::string csv = traces::write_report_csv(step.report);
  EXPECT_NE(csv.find(",exposed_F.dispatch_ns,exposed_B.dispatch_ns\n"), std::string::npos) << csv;
  EXPECT_NE(csv.find(",6000000,16000000\n"), std::string::npos) << csv;
}

TEST(PartsOutput, DrawsAStripPerLane) {
  const std::string svg = write_as("svg", predicted());
  // F alone 3 parts, the pair 5, B alone 2; and the cells of the four ops.
  std::size_t cells = 0;
  for (std::size_t at = svg.find("class=\"cell "); at != svg.npos;
       at = svg.find("class=\"cell ", at + 1))
    ++cells;
  EXPECT_EQ(cells, 3u + 5u + 2u + 4u);
  EXPECT_NE(svg.find("<title>dispatch of 0F0, layer 0: 10 ms to 16 ms, lane expert</title>"),
            svg.npos);
  EXPECT_NE(svg.find("strips: lanes compute, expert"), svg.npos);
}

TEST(PartsOutput, GivesThePageTheRunsAndTheirPlaces) {
  const RecordedStep step = predicted();
  const std::string page = write_report_set("html", {"", {{"pair", step.record()}}});
  const std::string_view begin = "id=\"data\">";
  const std::size_t from = page.find(begin) + begin.size();
  const Json json = Json::parse(page.substr(from, page.find("</script>", from) - from));
  const Json& shown = json["steps"][0];
  EXPECT_EQ(shown["partLanes"], Json::parse(R"(["compute","expert"])"));
  EXPECT_EQ(shown["partRuns"].back()["time"], 70'000'000);
  EXPECT_EQ(shown["partRuns"].back()["spans"].size(), 5u);
  EXPECT_TRUE(shown["partPlaces"].is_string());
}

}  // namespace
}  // namespace bubblescope::tests

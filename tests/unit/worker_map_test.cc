// Heat maps of workers by steps: which workers, which columns, and how they are shown.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "tests/support/recorded_step.h"
#include "traces/reports/worker_map_text.h"

namespace bubblescope::tests {
namespace {

/// Two replicas of two ranks over five steps. Replica 1's rank 1 is slow in all steps, replica 0's
/// in the last one; rank 0 of replica 1 reaches 1.5 %, which is too little to be shown.
SlowdownReport report() {
  SlowdownReport report;
  report.by_step = {
      {1, 1, 1, 1.3}, {1, 1, 1.015, 1.3}, {1, 1, 1, 1.2}, {1, 1, 1, 1.05}, {1, 1.04, 1, 1.3}};
  report.by_worker = {{0, 0, 1}, {0, 1, 1.01}, {1, 0, 1.002}, {1, 1, 1.25}};
  return report;
}

TEST(WorkerMap, ShowsSlowWorkersTheSlowestFirst) {
  const traces::WorkerMap map = traces::make_worker_map(report(), {7, 8, 9, 10, 11}, {8, 48});
  EXPECT_EQ(traces::write_worker_map_text(map),
            "workers:  how much longer each makes a step, a column per step from 7 to 11\n"
            "          rank 1 of replica 1  ##*+#\n"
            "          rank 1 of replica 0  ....+\n"
            "          . under 2 %  + under 10 %  * under 25 %  # from 25 %\n");
  EXPECT_EQ(map.unnoticed, 2u);
  EXPECT_EQ(map.cut, 0u);
}

TEST(WorkerMap, StepsShareColumnsWhereTheyAreTooMany) {
  const traces::WorkerMap map = traces::make_worker_map(report(), {7, 8, 9, 10, 11}, {1, 2});
  ASSERT_EQ(map.columns.size(), 2u);  // of three and two steps
  EXPECT_EQ(map.columns[1].first, 10);
  EXPECT_EQ(map.columns[1].last, 11);
  ASSERT_EQ(map.rows.size(), 1u);
  EXPECT_EQ(map.rows[0].slowdowns, (std::vector<double>{1.3, 1.3}));
  EXPECT_EQ(map.cut, 1u);
  EXPECT_NE(traces::write_worker_map_text(map).find("1 other worker"), std::string::npos);
}

TEST(WorkerMap, NeedsSeveralSteps) {
  SlowdownReport one = report();
  one.by_step.resize(1);
  EXPECT_EQ(traces::write_worker_map_text(traces::make_worker_map(one, {7}, {8, 48})), "");
}

TEST(WorkerMap, PagesHaveIt) {
  const RecordedStep step = record_step("1f1b", {.ranks = 2, .microbatches = 2});
  const traces::WorkerMap map = traces::make_worker_map(report(), {7, 8, 9, 10, 11}, {8, 48});
  const std::string page = write_report_set("html", {"", {{"1f1b", step.record()}}, map});
  const std::string mark = "id=\"data\">";
  const std::size_t begin = page.find(mark) + mark.size();
  const nlohmann::json data =
      nlohmann::json::parse(page.substr(begin, page.find("</script>", begin) - begin));
  EXPECT_EQ(data["workers"]["rows"][0]["worker"], "rank 1 of replica 1");
  EXPECT_EQ(data["workers"]["rows"][0]["S"][2], 1.2);
  EXPECT_EQ(data["workers"]["columns"][4], (nlohmann::json{11, 11}));
  EXPECT_EQ(write_report_set("html", {"", {{"1f1b", step.record()}}}).find("\"workers\""),
            std::string::npos);
}

}  // namespace
}  // namespace bubblescope::tests

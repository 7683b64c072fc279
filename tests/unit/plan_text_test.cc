// Reasons for configurations that a plan leaves out, and the axes of its heat map.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "traces/plans/heat_map.h"
#include "traces/plans/plan_table.h"
#include "traces/plans/refusals_text.h"

namespace bubblescope::tests {
namespace {

traces::Refusal refusal_of(const std::string& schedule, const std::string& reason,
                           std::int64_t configurations) {
  traces::Refusal refused;
  refused.schedule = schedule;
  refused.reason = reason;
  refused.configurations = configurations;
  return refused;
}

TEST(PlanText, SaysAReasonOnce) {
  traces::PlanTable table;
  table.refusals = {refusal_of("1f1b", "ep 3 does not divide", 2),
                    refusal_of("bfs", "too large", 1),
                    refusal_of("gpipe", "ep 3 does not divide", 3),
                    refusal_of("zb-v", "ep 3 does not divide", 0)};
  EXPECT_EQ(traces::write_refusals(table, 12),
            "\nleft out:\n"
            "  2 schedules  5 configurations: ep 3 does not divide (1f1b, gpipe)\n"
            "  bfs          1 configuration: too large\n"
            "  zb-v         not tried: ep 3 does not divide\n");
}

// The memory that is lacking is that of one configuration.
TEST(PlanText, KeepsReasonsOfMemoryApart) {
  traces::PlanTable table;
  table.refusals = {refusal_of("1f1b", "too large", 1), refusal_of("gpipe", "too large", 1)};
  table.refusals[1].closest.emplace();
  const std::string text = traces::write_refusals(table, 12);
  EXPECT_NE(text.find("  1f1b         1 configuration: too large\n"), text.npos) << text;
  EXPECT_NE(text.find("  gpipe        1 configuration, closest pp "), text.npos) << text;
}

Plan modelled_plan(std::int32_t tensor, Nanos step) {
  Plan plan;
  plan.configuration.schedule = "1f1b";
  plan.configuration.tensor = tensor;
  plan.configuration.shape.microbatches = 1;
  plan.step = step;
  plan.mfu = 0.5;
  return plan;
}

// Plans that differ in their tensor ranks alone have one size of micro-batches in the other axis.
TEST(HeatMap, HasTwoAxes) {
  const std::string map =
      traces::write_heat_map_text({modelled_plan(1, 100), modelled_plan(2, 110)}, {});
  EXPECT_NE(map.find("\ntp \\ mbs          1\n1           a 50.0%\n2           a 50.0%"), map.npos)
      << map;
}

}  // namespace
}  // namespace bubblescope::tests

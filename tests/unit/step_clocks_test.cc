// Steps at different clocks of their device.
#include "tools/commands/step_clocks.h"

#include <gtest/gtest.h>

#include "traces/schedules/text_schedule.h"

namespace bubblescope::tests {
namespace {

exec::DeviceState at_mhz(std::int64_t mhz) {
  exec::DeviceState state;
  state.samples = 1;
  state.sm_mhz = exec::StateRange{mhz, mhz};
  return state;
}

/// A device whose steps ran at these clocks; 0: not known.
exec::MonitoredDevices device_at(const std::vector<std::int64_t>& clocks) {
  exec::MonitoredDevice device;
  for (const std::int64_t mhz : clocks)
    device.steps.push_back(mhz > 0 ? at_mhz(mhz) : exec::DeviceState());
  return {{device}, ""};
}

tools::Measurement measured_at(const std::vector<std::int64_t>& clocks) {
  tools::Measurement measurement{{require_valid(traces::parse_schedule_text("0F0"))}};
  measurement.devices = device_at(clocks);
  measurement.steps.resize(clocks.size());
  return measurement;
}

// The example of the header: 10.0 ms x 1980 / 1900 = 10.421053 ms.
TEST(StepClocks, ScaleStepsToOneClock) {
  std::vector<Timeline> steps(3);
  const std::vector<Nanos> ends{10'000'000, 10'400'000, 11'000'000};
  for (std::size_t step = 0; step < steps.size(); ++step) {
    steps[step].start = {0};
    steps[step].end = {ends[step]};
  }
  tools::scale_to_clock(steps, device_at({1980, 1900, 1800}), 1900);
  EXPECT_EQ(steps[0].end[0], 10'421'053);
  EXPECT_EQ(steps[1].end[0], 10'400'000);
  EXPECT_EQ(steps[2].end[0], 10'421'053);
  EXPECT_EQ(steps[2].start[0], 0);
}

TEST(StepClocks, StayAsTheyAreWhereOneIsNotKnown) {
  std::vector<Timeline> steps(2);
  steps[0].end = {10};
  tools::scale_to_clock(steps, device_at({1980, 0}), 1900);
  EXPECT_EQ(steps[0].end[0], 10);
  EXPECT_FALSE(tools::find_sm_mhz(measured_at({1980, 0})));
  const tools::Measurement known = measured_at({1980});
  const tools::Measurement unknown = measured_at({0});
  EXPECT_FALSE(tools::find_median_sm_mhz({&known, &unknown}));
}

TEST(StepClocks, AreMeansOfOneMeasurementAndAMedianOfAll) {
  const tools::Measurement one = measured_at({1980, 1900});
  const tools::Measurement other = measured_at({1800});
  EXPECT_EQ(tools::find_sm_mhz(one), 1940);
  EXPECT_EQ(tools::find_median_sm_mhz({&one, &other}), 1900);
  EXPECT_EQ(tools::find_median_sm_mhz({&one}), 1900) << "as in all reports, the lower of two";
}

TEST(StepClocks, StretchPredictions) {
  EXPECT_FALSE(tools::at_clock({}, 2, 1980)) << "no costs";
  CostTable table;
  const auto at_clock = [&](double sm_mhz) {
    return tools::at_clock(tools::PredictInputs({}, {.costs = table}), 2, sm_mhz);
  };
  EXPECT_FALSE(at_clock(1980)) << "costs of an unknown clock";
  table.sm_mhz = 1980;
  EXPECT_FALSE(at_clock(1980.5)) << "less than a thousandth";
  const auto slower = at_clock(1800);
  ASSERT_TRUE(slower);
  const std::vector<SlowRank>& slow = slower->config().slow_ranks;
  ASSERT_EQ(slow.size(), 2U);
  EXPECT_EQ(slow[1].rank, 1);
  EXPECT_DOUBLE_EQ(slow[1].factor, 1.1);
}

}  // namespace
}  // namespace bubblescope::tests

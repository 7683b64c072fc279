// Tests that the schedules of measured orders are found by name.
#include "tools/inputs/recognize_schedule.h"

#include <gtest/gtest.h>

#include <string>

#include "sim/model/schedule_def.h"
#include "traces/schedules/text_schedule.h"

namespace bubblescope::tests {
namespace {

/// The name that is found for the order of a schedule on 4 ranks with 8 micro-batches.
std::string recognize(const std::string& name, int chunks) {
  ScheduleRequest request;
  request.shape.ranks = 4;
  request.shape.chunks = chunks;
  request.shape.microbatches = 8;
  return tools::recognize_schedule(*build_schedule(find_schedule(name), request)).value_or("");
}

TEST(RecognizeSchedule, FindsTheNameOfAnOrder) {
  EXPECT_EQ(recognize("1f1b", 1), "1f1b");
  EXPECT_EQ(recognize("gpipe", 1), "gpipe");
  EXPECT_EQ(recognize("zb-h1", 1), "zb-h1");
  EXPECT_EQ(recognize("zb-v", 2), "zb-v");
}

// Gradients are accumulated over two runs of 1F1B; in the second order rank 1 runs GPipe at first.
TEST(RecognizeSchedule, FindsWhatEveryRunOfAStepHas) {
  const auto recognize_two = [](const std::string& text) {
    return tools::recognize_runs(traces::parse_schedule_text(text), 2).value_or("");
  };
  const std::string first = "0F0 0F1 0B0 0B1 0F2 0F3 0B2 0B3 | ";
  EXPECT_EQ(recognize_two(first + "1F0 1B0 1F1 1B1 1F2 1B2 1F3 1B3"), "1f1b");
  EXPECT_EQ(recognize_two(first + "1F0 1F1 1B0 1B1 1F2 1B2 1F3 1B3"), "");
  EXPECT_EQ(recognize_two("0F0 0F1 0F2 0B0 0B1 0B2 | 1F0 1B0 1F1 1B1 1F2 1B2"), "");  // 3 of 2
}

// Their orders depend on costs; these are the ones for the usual costs.
TEST(RecognizeSchedule, FindsOrdersThatWereSearched) {
  EXPECT_EQ(recognize("1f1b-v", 2), "1f1b-v");
  EXPECT_EQ(recognize("v-half", 2), "v-half");
  EXPECT_EQ(recognize("v-min", 2), "v-min");
}

}  // namespace
}  // namespace bubblescope::tests

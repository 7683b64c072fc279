// The pair of DeepSeek's published profile, from the measured times of its parts.
//
// deepseek-ai/profile-data, train.json: one forward and one backward through four layers with
// experts. The kernels of each part have these times in milliseconds, over the four layers:
//   attn F 4.26 to 4.47, B 9.0 to 9.5, W 2.38 to 2.41; mlp F 4.25 to 5.18, B 4.7 to 5.7, W 4.6 to
//   5.3; dispatch F 5.7 to 7.9, B 7.3 to 7.9; combine F 7.3 to 9.6, B 4.4 to 7.3.
// In the first layer, dispatch and combine take (casts, notifications and transfers together)
//   combine B 52 + 1008 + 3320 us, dispatch F 74 + 1381 + 4604 us, dispatch B 753 + 6549 us,
//   combine F 1323 + 6002 us.
// The pair takes 129.012 ms, in which communication without compute takes 4.149 ms. Neither number
// is an input.
#include <gtest/gtest.h>

#include <string>

#include "sim/predict/predict.h"
#include "traces/costs/cost_file.h"
#include "traces/schedules/text_schedule.h"

namespace bubblescope::tests {
namespace {

constexpr double kMeasuredPair = 129.012e6;
constexpr double kMeasuredExposed = 4.149e6;

/// How long a part takes in the first layer, and in the three others.
struct LayerTimes {
  const char* first = "";
  const char* others = "";
};

std::string part(const std::string& name, const std::string& lane, LayerTimes times,
                 const std::string& more = "") {
  const std::string other = std::string("\"") + times.others + "\"";
  return "{\"name\":\"" + name + "\",\"lane\":\"" + lane + "\",\"time\":[\"" + times.first + "\"," +
         other + "," + other + "," + other + "]" + more + "}";
}

std::string compute(const std::string& name, const char* time) {
  return part(name, "compute", {time, time});
}

/// The costs; the first layer's own times, or the middle of the ranges in all layers.
std::string costs(bool with_first_layer, const std::string& order) {
  const auto expert = [&](const std::string& name, LayerTimes times, const std::string& more = "") {
    return part(name, "expert", {with_first_layer ? times.first : times.others, times.others},
                more);
  };
  return R"({"format":"bubblescope-costs/1","forward":{"layers":4,"parts":[)" +
         compute("attn", "4.365ms") + "," + expert("dispatch", {"6.059ms", "6.8ms"}) + "," +
         compute("mlp", "4.715ms") + "," + expert("combine", {"7.325ms", "8.45ms"}) +
         R"(]},"backward":{"layers":4,"parts":[)" +
         expert("combine", {"4.38ms", "5.85ms"}, R"(,"after_previous_layer":["attn"])") + "," +
         compute("mlp", "5.2ms") + "," + compute("mlp_w", "4.95ms") + "," +
         expert("dispatch", {"7.302ms", "7.6ms"}, R"(,"after":["mlp"])") + "," +
         compute("attn", "9.25ms") + "," + compute("attn_w", "2.395ms") +
         R"(]},"overlapped_pair":{"order":")" + order + "\"}}";
}

PartRun run_of_pair(bool with_first_layer, const std::string& order) {
  const Schedule schedule = traces::parse_schedule_text("0F0 (0F1;0B0)OVERLAP_F_B 0B1", "pair");
  Config config;
  config.costs = traces::parse_cost_file(costs(with_first_layer, order), "deepseek.json");
  const Prediction step = predict(require_valid(schedule), config);
  return *step.models.costs.parts.find(key_of(forward(0, 1), backward(0, 0)));
}

TEST(DeepseekProfile, GivesThePairAndItsExposedCommunication) {
  const PartRun run = run_of_pair(true, "dualpipe");
  EXPECT_NEAR(static_cast<double>(run.time), kMeasuredPair, 0.02 * kMeasuredPair);
  EXPECT_NEAR(static_cast<double>(run.exposed()), kMeasuredExposed, 1e6);
  EXPECT_EQ(run.time, 127'970'000);
  EXPECT_EQ(run.exposed(), 4'470'000);
  // The compute of F is 4 (4.365 + 4.715) ms; all that is exposed is a part of B.
  EXPECT_EQ(run.first_time(run.time), 36'320'000);
}

// Each window of each layer takes as long as the longer of its lanes:
// 5.85 + (5.2 + 4.95 + 4.715) + (9.25 + 2.395), four times; of this, 5.85 - 4.365 are exposed.
TEST(DeepseekProfile, ExposesMoreWhereAllLayersAreAlike) {
  const PartRun run = run_of_pair(false, "dualpipe");
  EXPECT_EQ(run.time, 4 * (5'850'000 + 14'865'000 + 11'645'000));
  EXPECT_EQ(run.exposed(), 4 * (5'850'000 - 4'365'000));
  for (const PartUse& use : run.uses)
    EXPECT_EQ(use.exposed > 0, use.of_backward && use.name == "combine") << use.name;
}

// Without barriers the all-to-all of a layer begins before the last weight gradient ends.
TEST(DeepseekProfile, HidesNearlyAllWithoutBarriers) {
  EXPECT_EQ(run_of_pair(true, "megatron").exposed(), 15'000);
  EXPECT_EQ(run_of_pair(false, "megatron").exposed(), 1'485'000);
}

}  // namespace
}  // namespace bubblescope::tests

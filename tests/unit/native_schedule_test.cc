// Native schedule files preserve everything that a Schedule states.
#include "traces/schedules/native_schedule.h"

#include <gtest/gtest.h>

#include "sim/ir/validate.h"
#include "sim/model/schedule_def.h"
#include "tests/support/malformed.h"
#include "tests/support/random_schedule.h"
#include "traces/schedules/text_schedule.h"

namespace bubblescope::tests {
namespace {

Schedule read(const std::string& text) { return traces::read_native_schedule(text, "f.json"); }

TEST(NativeSchedule, IsWrittenAsDocumented) {
  Schedule schedule = traces::parse_schedule_text("0F0 0F1 0B0 0B1 | 1F0 1B0 1F1 1B1");
  schedule.name = "1f1b";
  EXPECT_EQ(traces::write_native_schedule(schedule),
            "{\"format\":\"bubblescope-schedule/1\",\n"
            " \"name\":\"1f1b\",\n"
            " \"shape\":{\"ranks\":2,\"chunks\":1,\"microbatches\":2,\"slices\":1},\n"
            " \"pipelines\":1,\n"
            " \"forward_only\":false,\n"
            " \"placement\":[0,1],\n"
            " \"order\":[\"0F0 0F1 0B0 0B1\",\n"
            "  \"1F0 1B0 1F1 1B1\"]}\n");
}

TEST(NativeSchedule, KeepsReplicasAndWeights) {
  ScheduleRequest request;
  request.shape.ranks = 3;
  request.shape.microbatches = 4;
  request.replicas = {2, 1};
  const Schedule schedule = build_schedule(find_schedule("pipedream"), request);
  const std::string text = traces::write_native_schedule(schedule);
  EXPECT_NE(text.find(" \"replicas\":[2,1],\n \"weights\":[\"0 0 0>1 0>2\","), std::string::npos)
      << text;
  EXPECT_TRUE(read(text) == schedule);
}

TEST(NativeSchedule, NeedsNoKeysThatHaveADefault) {
  const Schedule schedule =
      read(R"({"format":"bubblescope-schedule/1","name":"f","placement":[0],"order":["0F0 0B0"],)"
           R"("shape":{"ranks":1,"chunks":1,"microbatches":1}})");
  EXPECT_TRUE(schedule == traces::parse_schedule_text("0F0 0B0", "f"));
}

TEST(NativeSchedule, KeepsReplicasAndVersionsOfWeights) {
  const std::string text =
      "{\"format\":\"bubblescope-schedule/1\",\n"
      " \"name\":\"pipedream\",\n"
      " \"shape\":{\"ranks\":2,\"chunks\":1,\"microbatches\":2,\"slices\":1},\n"
      " \"pipelines\":1,\n"
      " \"forward_only\":false,\n"
      " \"placement\":[0],\n"
      " \"order\":[\"0F0 0B0\",\n"
      "  \"0F1 0B1\"],\n"
      " \"replicas\":[2],\n"
      " \"weights\":[\"0 0>1\",\n"
      "  \"0 0>1\"]}\n";
  const Schedule schedule = read(text);
  EXPECT_EQ(schedule.replicas(0), 2);
  EXPECT_EQ(schedule.weights[1][1], (WeightUse{0, 1}));
  EXPECT_TRUE(validate(schedule).empty());
  EXPECT_EQ(traces::write_native_schedule(schedule), text);
}

TEST(NativeSchedule, LeavesIllegalSchedulesToValidate) {
  const Schedule schedule =
      read(R"({"format":"bubblescope-schedule/1","name":"f","placement":[0],"order":["7F9.3 0B0"],)"
           R"("shape":{"ranks":1,"chunks":1,"microbatches":1}})");
  EXPECT_FALSE(validate(schedule).empty());
}

TEST(NativeSchedule, RefusesWhatIsMalformed) { expect_refusals("native_schedule.txt", read); }

TEST(NativeSchedule, SurvivesDamage) {
  Schedule schedule = random_schedule(4, {.slices = true, .messages = true});
  schedule.shape.group_size = 2;
  expect_survival(traces::write_native_schedule(schedule), read);
}

TEST(NativeSchedule, RoundTripsRandomSchedules) {
  for (std::uint32_t seed = 0; seed < 1000; ++seed) {
    RandomTraits traits;
    traits.slices = seed % 2 == 1;
    traits.recompute = seed % 5 == 0;
    traits.messages = seed % 3 == 1;
    traits.idle = seed % 3 == 2;
    Schedule schedule = random_schedule(seed, traits);
    schedule.name = "a \"name\" \\ of\tbytes \x01 and \xc3\xa9";
    if (seed % 7 == 0) schedule.shape.group_size = 3;
    const std::string text = traces::write_native_schedule(schedule);
    ASSERT_TRUE(read(text) == schedule) << "seed " << seed << "\n" << text;
  }
}

}  // namespace
}  // namespace bubblescope::tests

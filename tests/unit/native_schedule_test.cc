// Native schedule files preserve everything that a Schedule states.
#include "traces/schedules/native_schedule.h"

#include <gtest/gtest.h>

#include <tuple>

#include "sim/ir/validate.h"
#include "sim/model/schedule_def.h"
#include "tests/support/malformed.h"
#include "tests/support/problem_text.h"
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

// Files as release 0.1 wrote them, for bpipe and chimera-doubling.
TEST(NativeSchedule, ReadsTheOldNamesOfKeys) {
  const std::string targets = R"({"format":"bubblescope-schedule/1",
 "name":"bpipe",
 "shape":{"ranks":4,"chunks":1,"microbatches":4,"slices":1},
 "pipelines":1,
 "forward_only":false,
 "placement":[0,1,2,3],
 "order":["0F0 0F1 0F2 0EVICT2 0F3 0B0 0LOAD2 0B1 0B2 0B3",
  "1F0 1F1 1F2 1B0 1F3 1B1 1B2 1B3",
  "2F0 2F1 2B0 2F2 2B1 2F3 2B2 2B3",
  "3F0 3B0 3F1 3B1 3F2 3B2 3F3 3B3"],
 "keepers":[3,2,null,null]}
)";
  EXPECT_EQ(read(targets).offload_target_of_rank, (std::vector<std::int32_t>{3, 2, 2, 3}));
  const std::string fused = R"({"format":"bubblescope-schedule/1",
 "name":"chimera-doubling",
 "shape":{"ranks":2,"chunks":1,"microbatches":4,"slices":1},
 "pipelines":2,
 "forward_only":false,
 "placement":[0,1,1,0],
 "order":["0F0 0F1 3F2 3F3 3B2 3B3 0B0 0B1",
  "2F2 2F3 1F0 1F1 1B0 1B1 2B2 2B3"],
 "joint_forwards":2}
)";
  EXPECT_EQ(read(fused).fused_forwards, 2);
  // Both are written with the new names, and otherwise as they were.
  for (const auto& [text, old_name, name] :
       {std::tuple{targets, "keepers", "offload_targets"},
        std::tuple{fused, "joint_forwards", "fused_forwards"}}) {
    std::string expected = text;
    expected.replace(expected.find(old_name), std::string(old_name).size(), name);
    EXPECT_EQ(traces::write_native_schedule(read(text)), expected);
    EXPECT_TRUE(read(expected) == read(text));
    EXPECT_TRUE(validate(read(text)).empty());
  }
}

TEST(NativeSchedule, LeavesIllegalSchedulesToValidate) {
  const Schedule schedule =
      read(R"({"format":"bubblescope-schedule/1","name":"f","placement":[0],"order":["7F9.3 0B0"],)"
           R"("shape":{"ranks":1,"chunks":1,"microbatches":1}})");
  EXPECT_EQ(problems_of(schedule),
            "0F0 is missing; add it to this rank\n"
            "7F9.3 is on stage 7, stages are 0..0");
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

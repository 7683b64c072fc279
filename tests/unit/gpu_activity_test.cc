// Activity records: their assignment to ops, launch gaps, and steps on a simulated device.
#include <gtest/gtest.h>

#include <string>
#include <variant>

#include "exec/gpu/host/gpu_job.h"
#include "exec/runtime/execute.h"
#include "sim/ir/error.h"
#include "sim/ir/lower.h"
#include "sim/model/schedule_def.h"
#include "tests/support/as_written.h"
#include "tests/support/error_text.h"
#include "tests/support/fake_gpu.h"
#include "tools/commands/measurement_json.h"

namespace bubblescope::tests {
namespace {

exec::ActivityRecord launched_by(std::uint32_t correlation, std::uint64_t tag) {
  exec::ActivityRecord record;
  record.raw.kind = kBubblescopeLaunchedBy;
  record.raw.correlation = correlation;
  record.raw.tag = tag;
  return record;
}

exec::ActivityRecord ran(std::uint32_t correlation, const std::string& name, Nanos start, Nanos end,
                         std::int32_t kind = kBubblescopeKernel) {
  exec::ActivityRecord record;
  record.raw.kind = kind;
  record.raw.correlation = correlation;
  record.raw.start = start;
  record.raw.end = end;
  record.name = name;
  return record;
}

/// Two instructions: from 100 to 200, and from 200 to 260.
Timeline two_ops() {
  Timeline timeline;
  timeline.start = {100, 200};
  timeline.end = {200, 260};
  return timeline;
}

// The records' clock is 5000 ahead, as instruction 1 shows, whose kernel waits for nothing: 5200 is
// 200. Instruction 0 has kernels from 110 to 150 and from 140 to 170, and a copy from 180 to 190.
// They cover 60 + 10 of its 100; the two ops have 160, of which 70 + 60 are covered: 30 are gaps,
// or 18.75 %. All that ran is 40 + 30 + 10 + 60 = 140, of which b has 90 (64.3 %) and a 40 (28.6
// %).
exec::ActivityLog sample() {
  exec::ActivityLog log;
  const std::uint64_t first = exec::activity_tag(3, 0, 2);
  log.records = {ran(7, "b", 5200, 5260),
                 launched_by(4, first),
                 ran(4, "a", 5110, 5150),
                 ran(5, "b", 5140, 5170),
                 launched_by(5, first),
                 launched_by(6, first),
                 launched_by(7, first + 1),
                 ran(6, "", 5180, 5190, kBubblescopeCopy),
                 launched_by(8, exec::activity_tag(2, 1, 2)),
                 ran(8, "of the step before", 4000, 4010),
                 ran(9, "of no op", 5000, 5300)};
  return log;
}

TEST(GpuActivity, StandsUnderTheOpsOfItsStep) {
  const exec::StepActivity activity = exec::activity_of_step(sample(), 3, two_ops());
  ASSERT_EQ(activity.activities.size(), 4u);
  EXPECT_EQ(activity.activities[0].name, "a");
  EXPECT_EQ(activity.activities[0].start, 110);
  EXPECT_EQ(activity.activities[1].end, 170);
  EXPECT_EQ(activity.activities[2].name, "copy");
  EXPECT_EQ(activity.activities[3].id, 1u);
  EXPECT_EQ(activity.activities[3].start, 200);
}

TEST(GpuActivity, TimeUnderSeveralKernelsIsCoveredOnce) {
  const exec::StepActivity activity = exec::activity_of_step(sample(), 3, two_ops());
  ASSERT_EQ(activity.ops.size(), 2u);
  EXPECT_EQ(activity.ops[0].launches, 3);
  EXPECT_EQ(activity.ops[0].between_events, 100);
  EXPECT_EQ(activity.ops[0].covered, 70);
  EXPECT_EQ(activity.ops[1].covered, 60);
}

TEST(GpuActivity, IsSummedUpInTwoLines) {
  EXPECT_EQ(to_string(exec::activity_of_step(sample(), 3, two_ops())),
            "activity: 3 kernels, 1 copy, 0 memory sets; their ops take 0.00016 ms, 18.8 % of it "
            "in launch gaps\n"
            "activity: most time in b (64.3 %), a (28.6 %)");
  std::string text;
  traces::JsonWriter json(text);
  tools::write_activity_json(json, exec::activity_of_step(sample(), 3, two_ops()));
  EXPECT_EQ(text,
            "\"activity\":{\"kernels\":3,\"copies\":1,\"clears\":0,\"lost\":0,\"untimed\":0,"
            "\"ops_ns\":160,\"covered_ns\":130,\"longest\":[{\"name\":\"b\",\"ns\":90},"
            "{\"name\":\"a\",\"ns\":40}],\"most\":[{\"name\":\"b\",\"ns\":90},"
            "{\"name\":\"a\",\"ns\":40}]}");
}

TEST(GpuActivity, MissingRecordsAreReported) {
  exec::ActivityLog log = sample();
  log.lost = 2;
  log.records[2].raw.start = 0;
  const exec::StepActivity activity = exec::activity_of_step(log, 3, two_ops());
  EXPECT_EQ(activity.untimed, 1);
  EXPECT_EQ(activity.activities.size(), 3u);
  EXPECT_NE(to_string(activity).find("\nactivity: incomplete: records lost: 2, without a time: 1"),
            std::string::npos);
}

TEST(GpuActivity, AStepWithoutRecordsHasNone) {
  const exec::StepActivity activity = exec::activity_of_step({}, 0, two_ops());
  EXPECT_TRUE(activity.activities.empty());
  EXPECT_EQ(to_string(activity),
            "activity: 0 kernels, 0 copies, 0 memory sets; their ops take 0 ms, 0.0 % of it in "
            "launch gaps");
}

TEST(GpuActivity, KernelsHaveTheNamesOfTheirSource) {
  EXPECT_EQ(exec::kernel_name("_ZN11bubblescope4exec11norm_kernelIfEEvPT_i"), "norm_kernel<float>");
  EXPECT_EQ(exec::kernel_name("_ZN11bubblescope4exec12_GLOBAL__N_111spin_kernelElPVKj"),
            "spin_kernel");
  EXPECT_EQ(exec::kernel_name("nvjet_hsh_128x64_64x8_2x1_v_bz_TNN"),
            "nvjet_hsh_128x64_64x8_2x1_v_bz_TNN");
}

struct Ran {
  Program program;
  Timeline timeline;
  exec::StepActivity activity;
};

/// The second of two steps of 1F1B, F 1000 and B 2000 ns, messages 7 ns.
Ran run_1f1b() {
  const Schedule schedule = build_schedule(find_schedule("1f1b"), {{2, 1, 4, 1, {}}, {}, {}});
  Ran made{std::get<Program>(lower(schedule, {})), {}, {}};
  const ValidSchedule valid = require_valid(schedule);
  exec::JobRequest request{valid, made.program, nullptr, {}, exec::WaitMode::kSpin, {}};
  for (const Instruction& instruction : made.program.instructions)
    request.durations.push_back(instruction.role != Role::kWork           ? 0
                                : is_message(instruction)                 ? 7
                                : instruction.op.kind == OpKind::kForward ? 1000
                                                                          : 2000);
  request.device.activity = true;
  const exec::Job job = exec::start_gpu_job(fake_gpu_calls(), request, {});
  made.timeline = exec::execute(made.program, *job.backend, "cuda", {1, 1, {}}).steps.at(0);
  made.activity = job.activity(1, made.timeline);
  return made;
}

// Every op is one kernel that lasts as long as the op: 16 ops, and 8 messages.
TEST(GpuActivity, OfAStepIsOneKernelForEveryOpThatPassesTime) {
  reset_fake_gpu(1);
  const Ran ran = run_1f1b();
  ASSERT_EQ(ran.activity.activities.size(), 24u);
  for (const exec::DeviceActivity& activity : ran.activity.activities) {
    EXPECT_EQ(activity.start, ran.timeline.start[activity.id]);
    EXPECT_EQ(activity.end, ran.timeline.end[activity.id]);
    EXPECT_EQ(activity.name, "spin_kernel");
  }
  for (const exec::OpActivity& op : ran.activity.ops) EXPECT_EQ(op.covered, op.between_events);
}

TEST(GpuActivity, FailingCallsAreReported) {
  for (const std::string call : {"start_activity", "tag", "read_activity"}) {
    reset_fake_gpu(1).fails_at = call;
    try {
      const Ran ran = run_1f1b();
      EXPECT_FALSE(ran.timeline.breakdown.empty()) << call;
      EXPECT_NE(ran.timeline.breakdown.find("as it was told"), std::string::npos) << call;
    } catch (const Error& error) {
      EXPECT_STREQ(error.what(), "`activity`: the fake device fails as it was told") << call;
    }
  }
}

TEST(GpuActivity, IsNotAskedOfGraphs) {
  reset_fake_gpu(1);
  const Schedule schedule = build_schedule(find_schedule("gpipe"), {{1, 1, 1, 1, {}}, {}, {}});
  const Program program = std::get<Program>(lower(schedule, {}));
  const ValidSchedule valid = require_valid(schedule);
  exec::JobRequest request{valid, program, nullptr, {}, exec::WaitMode::kSpin, {}};
  request.device.activity = true;
  request.device.graph = true;
  EXPECT_EQ(error_of([&] { exec::start_gpu_job(fake_gpu_calls(), request, {}); }),
            "`activity`: CUPTI does not assign a graph's kernels to ops; omit `graph`");
}

}  // namespace
}  // namespace bubblescope::tests

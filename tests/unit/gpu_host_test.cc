// The host's side of a run on GPUs: weights without uploads, gates that end by themselves,
// partitions that the driver cannot make, and what the environment says.
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <variant>

#include "exec/gpu/host/gpu_environment.h"
#include "exec/gpu/host/gpu_job.h"
#include "exec/gpu/host/gpu_training.h"
#include "exec/runtime/execute.h"
#include "exec/training/draw_entry.h"
#include "sim/ir/lower.h"
#include "tests/support/as_written.h"
#include "tests/support/built_schedule.h"
#include "tests/support/error_text.h"
#include "tests/support/fake_gpu.h"
#include "tests/support/verified_training.h"

namespace bubblescope::tests {
namespace {

exec::Execution play(const Schedule& schedule, std::string* description = nullptr,
                     bool graph = false) {
  const Program program = std::get<Program>(lower(schedule, {}));
  const ValidSchedule valid = require_valid(schedule);
  exec::JobRequest request{valid, program, nullptr, {}, exec::WaitMode::kSpin, {}};
  request.durations.assign(program.size(), 1000);
  request.device.graph = graph;
  const exec::Job job = exec::start_gpu_job(fake_gpu_calls(), request, {});
  if (description != nullptr) *description = job.device;
  return exec::execute(program, *job.backend, "cuda", {1, 1, {}});
}

TEST(DrawnWeights, HaveMeanZeroAndVarianceOne) {
  double sum = 0;
  double squares = 0;
  constexpr int kCount = 1'000'000;
  for (std::uint64_t at = 0; at < kCount; ++at) {
    const double value = exec::draw_entry(7, at);
    sum += value;
    squares += value * value;
  }
  // Five standard errors: 1/sqrt(n) of the mean, and less than sqrt(2/n) of the variance.
  EXPECT_NEAR(sum / kCount, 0, 5e-3);
  EXPECT_NEAR(squares / kCount, 1, 7e-3);
}

TEST(DrawnWeights, AreThoseOfTheirCounterHoweverManyThreadsDrawThem) {
  const exec::StagePlan plan{{1, 512, 2, 61, 16, 1, {}}, 0, 2, 3};  // up: 512 x 2048, four threads
  const exec::Stage stage = exec::make_stage(plan);
  const std::vector<exec::WeightOutline> outlines = exec::outline_weights(plan);
  for (std::size_t at = 0; at < outlines.size(); ++at) {
    const exec::WeightDraw draw = exec::draw_of(plan, at, outlines[at]);
    const std::vector<float>& values = stage.weights[at].values;
    for (std::size_t entry = 0; entry < values.size(); entry += 997)
      ASSERT_EQ(values[entry],
                outlines[at].is_gain ? 1 : draw.scale * exec::draw_entry(draw.key, entry));
  }
  exec::StagePlan other = plan;
  other.seed = 4;
  EXPECT_NE(exec::make_stage(other).weights[0], stage.weights[0]);
  other = plan;
  other.stage = 1;
  EXPECT_NE(exec::make_stage(other).weights[1], stage.weights[3]);  // qkv of both stages
}

TEST(GpuHost, WeightsAreNeitherUploadedNorDownloadedWithoutVerification) {
  FakeGpu& gpu = reset_fake_gpu(1);
  const Schedule schedule = build("zb-h1", 4, 8);
  const Program program = std::get<Program>(lower(schedule, {}));
  const ValidSchedule valid = require_valid(schedule);
  const exec::TrainingOptions options = small_model(4);
  const exec::JobRequest request{valid, program, &options, {}, exec::WaitMode::kSpin, {}};
  const exec::Job job = exec::start_gpu_job(fake_gpu_calls(), request, {});
  EXPECT_EQ(gpu.uploaded_bytes, 0);
  ASSERT_FALSE(exec::execute(program, *job.backend, "cuda", {1, 2, job.after_step}).breakdown);
  const std::int64_t tokens = std::int64_t{8} * options.model.rows();
  EXPECT_EQ(gpu.uploaded_bytes, 3 * 2 * tokens * 4);  // three steps of inputs and targets
  EXPECT_EQ(gpu.downloaded_bytes, 3 * 8 * 4);         // a loss per micro-batch
  job.result();
  EXPECT_GT(gpu.downloaded_bytes, 10'000);  // the weights and their gradients
}

TEST(GpuHost, AGateThatEndsByItselfFailsTheStep) {
  for (const bool graph : {false, true}) {
    FakeGpu& gpu = reset_fake_gpu(1);
    gpu.gates_expire = true;
    const exec::Execution execution = play(build("1f1b", 4, 8), nullptr, graph);
    ASSERT_TRUE(execution.breakdown);
    const std::string& message = execution.breakdown->message;
    const std::string progress = graph ? "before the step's graph was launched"
                                       : "when 112 of 112 instructions were enqueued";
    EXPECT_EQ(
        message.find("the gate that holds the device back ended by itself after 3 s, " + progress),
        0u)
        << message;
  }
}

TEST(GpuHost, PartitionsBecomeSmallerWhereTheDriverHasTooFewGroups) {
  FakeGpu& gpu = reset_fake_gpu(1);
  gpu.clusters = {18, 18, 16, 16, 16, 16, 16, 16};  // 132, of which 8 groups of 16 can be had
  std::string description;
  ASSERT_FALSE(play(build("1f1b", 8, 8), &description).breakdown);
  EXPECT_EQ(gpu.partition_sizes, std::vector<std::int32_t>(8, 16));
  EXPECT_EQ(description.find("too few"), std::string::npos) << description;

  FakeGpu& other = reset_fake_gpu(1);
  other.clusters.assign(11, 12);  // 132, and no group of 16
  ASSERT_FALSE(play(build("1f1b", 8, 8), &description).breakdown);
  EXPECT_EQ(other.partition_sizes, std::vector<std::int32_t>(8, 8));
  EXPECT_NE(description.find("8 multiprocessors each (green contexts; the driver has too few "
                             "groups of 16)"),
            std::string::npos)
      << description;

  FakeGpu& none = reset_fake_gpu(1);
  none.clusters.assign(33, 4);
  EXPECT_EQ(error_of([&] { play(build("1f1b", 8, 8)); }),
            "the driver cannot split device 0 into 8 partitions of its multiprocessors; use "
            "fewer ranks, or `share` streams");
}

TEST(GpuHost, StreamsThatShareQueuesAreReported) {
  reset_fake_gpu(1);
  std::string description;
  ASSERT_FALSE(play(build("1f1b", 8, 8), &description).breakdown);
  EXPECT_EQ(description.find("share its"), std::string::npos) << description;
  reset_fake_gpu(1);
  ASSERT_FALSE(play(build("1f1b", 12, 12), &description).breakdown);
  // 12 lanes, 22 directed links, and a stream each of the gate, the weights and the reductions.
  EXPECT_NE(description.find("; 37 streams of a device share its 32 queues"), std::string::npos)
      << description;
}

exec::ReadVariable environment(std::map<std::string, std::string> values) {
  return [values = std::move(values)](const char* name) {
    const auto at = values.find(name);
    return at == values.end() ? std::nullopt : std::optional<std::string>(at->second);
  };
}

TEST(GpuEnvironment, TooFewQueuesAreRaisedAndReported) {
  EXPECT_EQ(exec::choose_queues(environment({})).value, "32");
  EXPECT_EQ(exec::choose_queues(environment({})).note, "");
  const exec::QueueSetting raised =
      exec::choose_queues(environment({{"CUDA_DEVICE_MAX_CONNECTIONS", "1"}}));
  EXPECT_EQ(raised.value, "32");
  EXPECT_EQ(raised.note,
            "CUDA_DEVICE_MAX_CONNECTIONS=1 would make lanes wait for each other; it is raised to "
            "32");
  const exec::QueueSetting kept =
      exec::choose_queues(environment({{"CUDA_DEVICE_MAX_CONNECTIONS", "32"}}));
  EXPECT_EQ(kept.value + kept.note, "32");
}

TEST(GpuEnvironment, ToolsThatMakeLaunchesWaitAreRecognized) {
  EXPECT_EQ(exec::find_blocking_tool(environment({}), "7f00 /usr/lib/libc.so.6\n"), "");
  EXPECT_EQ(exec::find_blocking_tool(environment({{"CUDA_LAUNCH_BLOCKING", "0"}}), ""), "");
  EXPECT_EQ(exec::find_blocking_tool(environment({{"CUDA_LAUNCH_BLOCKING", "1"}}), ""),
            "CUDA_LAUNCH_BLOCKING=1");
  const std::string library = "/opt/compute-sanitizer/libsanitizer-collection.so";
  EXPECT_EQ(exec::find_blocking_tool(environment({}), "7f00 " + library + "\n"),
            "compute-sanitizer");
  EXPECT_EQ(exec::find_blocking_tool(environment({{"CUDA_INJECTION64_PATH", library}}), ""),
            "compute-sanitizer");
}

}  // namespace
}  // namespace bubblescope::tests

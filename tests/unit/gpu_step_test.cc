// Steps on a simulated GPU with a clock of its own: what is enqueued runs as the simulator
// predicts.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <string>
#include <utility>
#include <variant>

#include "exec/gpu/host/gpu.h"
#include "exec/gpu/host/gpu_job.h"
#include "exec/runtime/execute.h"
#include "sim/engine/simulate.h"
#include "sim/ir/error.h"
#include "sim/ir/lower.h"
#include "sim/model/schedule_def.h"
#include "tests/support/as_written.h"
#include "tests/support/error_text.h"
#include "tests/support/fake_gpu.h"

namespace bubblescope::tests {
namespace {

struct Case {
  Schedule schedule;
  Program program;
  std::vector<Nanos> durations;
};

/// Every instruction has another duration, and so has every message.
Case make_case(const Schedule& schedule, const LowerOptions& options = {}) {
  Case made{schedule, std::get<Program>(lower(schedule, options)), {}};
  for (InstructionId id = 0; id < made.program.size(); ++id) {
    const Instruction& instruction = made.program.instructions[id];
    const Nanos least = instruction.role != Role::kWork ? 0 : is_message(instruction) ? 7 : 1000;
    made.durations.push_back(least == 0 ? 0 : least + id % 97);
  }
  return made;
}

Case make_case(const std::string& name, std::int32_t ranks, std::int32_t microbatches) {
  return make_case(build_schedule(find_schedule(name), {{ranks, 1, microbatches, 1, {}}, {}, {}}));
}

exec::Execution run(const Case& made, exec::BackendRequest request = {},
                    const exec::ExecuteOptions& options = {1, 2, {}},
                    const exec::DeviceOptions& device = {}) {
  const ValidSchedule valid = require_valid(made.schedule);
  const exec::JobRequest job{valid,          made.program,          nullptr,
                             made.durations, exec::WaitMode::kSpin, device};
  const exec::Job started = exec::start_gpu_job(fake_gpu_calls(), job, std::move(request));
  return exec::execute(made.program, *started.backend, "cuda", options);
}

void expect_equal(const Timeline& measured, const Timeline& predicted) {
  EXPECT_EQ(measured.start, predicted.start);
  EXPECT_EQ(measured.end, predicted.end);
}

TEST(GpuStep, EveryScheduleRunsAsItIsSimulated) {
  reset_fake_gpu(1);
  for (const ScheduleDef& def : Registry<ScheduleDef>::instance().all())
    for (const std::int32_t slices : {1, 4}) {
      SCOPED_TRACE(def.name);
      Schedule schedule;
      try {
        schedule = build_schedule(def, {{4, 1, 8, slices, {}}, {}, {}});
      } catch (const Error&) {
        continue;
      }
      if (schedule.fused_forwards > 1) continue;  // two messages share a stream
      const Case made = make_case(schedule);
      const exec::Execution execution = run(made);
      ASSERT_FALSE(execution.breakdown) << execution.breakdown->message;
      for (const Timeline& step : execution.steps)
        expect_equal(step, simulate(made.program, made.durations));
    }
}

TEST(GpuStep, PostedMessagesRunAsTheyAreSimulatedInEveryMode) {
  reset_fake_gpu(1);
  const Schedule schedule = build_schedule(find_schedule("1f1b"), {{4, 1, 8, 1, {}}, {}, {}});
  for (const Named<P2pMode>& mode : kP2pModes) {
    SCOPED_TRACE(mode.name);
    LowerOptions options;
    options.mode = mode.choice;
    options.eager_slots = 2;
    if (std::holds_alternative<Deadlock>(lower(schedule, options))) continue;
    const Case made = make_case(schedule, options);
    const exec::Execution execution = run(made);
    ASSERT_FALSE(execution.breakdown) << execution.breakdown->message;
    expect_equal(execution.steps[1], simulate(made.program, made.durations));
  }
}

TEST(GpuStep, AGraphIsCapturedOnceAndRunsAsItIsSimulated) {
  FakeGpu& gpu = reset_fake_gpu(2);
  for (const char* name : {"1f1b", "zb-v", "dualpipe"}) {
    const Case made = make_case(name, 4, 8);
    exec::DeviceOptions device;
    device.graph = true;
    gpu.graph_launches = 0;
    const exec::Execution execution = run(made, {}, {1, 3, {}}, device);
    ASSERT_FALSE(execution.breakdown) << execution.breakdown->message;
    EXPECT_EQ(gpu.graph_launches, 3);
    for (const Timeline& step : execution.steps)
      expect_equal(step, simulate(made.program, made.durations));
  }
}

TEST(GpuStep, GivesEverythingBack) {
  FakeGpu& gpu = reset_fake_gpu(1);
  exec::DeviceOptions device;
  device.graph = true;
  run(make_case("zb-h1", 4, 8), {}, {1, 2, {}}, device);
  EXPECT_EQ(gpu.partition_sizes, (std::vector<std::int32_t>{32, 32, 32, 32}));
  EXPECT_EQ(gpu.handles, 0);
  EXPECT_EQ(gpu.bytes, 0);
}

TEST(GpuStep, EveryInstructionIsNamedForProfilers) {
  FakeGpu& gpu = reset_fake_gpu(1);
  const Case made = make_case("zb-h1", 2, 2);
  run(made, {}, {0, 1, {}});
  std::vector<std::string> expected;
  for (const Instruction& instruction : made.program.instructions)
    expected.push_back(to_string(instruction.op));
  std::sort(expected.begin(), expected.end());
  std::sort(gpu.labels.begin(), gpu.labels.end());
  EXPECT_EQ(gpu.labels, expected);
  EXPECT_EQ(gpu.open_labels, 0);
}

TEST(GpuStep, ADelayLengthensTheOpByAsMuch) {
  reset_fake_gpu(1);
  Case made = make_case("1f1b", 4, 8);
  const Injections injections{parse_injection("rank=1,op=1F3,delay=50us")};
  const exec::Execution execution = run(made, {{}, injections});
  made.durations = inject(injections, made.program, made.durations);
  expect_equal(execution.steps[0], simulate(made.program, made.durations));
}

TEST(GpuStep, ADeadRankIsNamedAndTheStepStopped) {
  FakeGpu& gpu = reset_fake_gpu(1);
  const exec::Execution execution =
      run(make_case("1f1b", 4, 8), {{}, {parse_injection("rank=1,op=1F1,die")}});
  ASSERT_TRUE(execution.breakdown);
  EXPECT_EQ(execution.breakdown->fault, Fault::kMachine);
  EXPECT_EQ(execution.breakdown->message.find("rank 1 died at 1F1, as `inject` says; every rank "
                                              "was stopped: rank 1 at 1F1"),
            0u)
      << execution.breakdown->message;
  EXPECT_NE(execution.breakdown->message.find("rank 2 at 2F1 waits for 1F1 of rank 1"),
            std::string::npos)
      << execution.breakdown->message;
  EXPECT_EQ(gpu.handles, 0);
}

TEST(GpuStep, AHangIsStoppedByTheTimeoutAndByAnInterrupt) {
  reset_fake_gpu(1);
  exec::BackendRequest request{{}, {parse_injection("rank=2,op=2B0,hang")}};
  request.limits.timeout = 20'000'000;
  const exec::Execution execution = run(make_case("1f1b", 4, 8), std::move(request));
  ASSERT_TRUE(execution.breakdown);
  EXPECT_EQ(
      execution.breakdown->message.find("no progress within `timeout`: rank 2 at 2B0 (running); "),
      0u)
      << execution.breakdown->message;
  const std::atomic<bool> interrupted = true;
  exec::BackendRequest other{{}, {parse_injection("rank=2,op=2B0,hang")}};
  other.limits.interrupted = &interrupted;
  const exec::Execution stopped = run(make_case("1f1b", 4, 8), std::move(other));
  EXPECT_EQ(stopped.breakdown->message.find("interrupted: "), 0u);
}

TEST(GpuStep, EveryFailingCallIsReportedAndLeaksNothing) {
  for (const char* call :
       {"count_devices", "describe_device", "link_devices", "create_stream", "create_event",
        "create_flag", "split", "record", "wait", "spin", "query", "elapsed"}) {
    SCOPED_TRACE(call);
    FakeGpu& gpu = reset_fake_gpu(2);
    gpu.fails_at = call;
    std::string error_text;
    try {
      const exec::Execution execution = run(make_case("1f1b", 4, 8));
      if (execution.breakdown) error_text = execution.breakdown->message;
    } catch (const Error& error) {
      EXPECT_EQ(error.fault(), Fault::kMachine);
      error_text = error.what();
    }
    EXPECT_EQ(error_text.find("the fake device fails as it was told"), 0u) << error_text;
    EXPECT_EQ(gpu.handles, 0);
  }
}

TEST(Gpu, WithoutAModuleOneLineSaysWhatToInstall) {
  try {
    exec::open_gpu("/nowhere/bubblescope_cuda.so");
    FAIL() << "there is a module";
  } catch (const Error& error) {
    EXPECT_EQ(error.fault(), Fault::kMachine);
    EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos);
    EXPECT_NE(std::string(error.what()).find("/nowhere/bubblescope_cuda.so"), std::string::npos);
  }
}

TEST(Gpu, TooManyRanksForOneDeviceAreRefused) {
  reset_fake_gpu(1, 16);
  EXPECT_EQ(error_of([&] { run(make_case("1f1b", 4, 8)); }),
            "a device of 16 multiprocessors has at most 2 partitions, not 4; use fewer ranks, or "
            "`share` streams");
  exec::DeviceOptions device;
  device.share = exec::Share::kStreams;
  EXPECT_FALSE(run(make_case("1f1b", 4, 8), {}, {}, device).breakdown);
}

}  // namespace
}  // namespace bubblescope::tests

// Training on a simulated GPU that computes on the host: the launches, their memory and their order
// give the results of the serial reference.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "exec/gpu/host/activation_pool.h"
#include "exec/gpu/host/device_memory.h"
#include "exec/gpu/host/version_plan.h"
#include "sim/analysis/memory_curve.h"
#include "sim/ir/error.h"
#include "sim/ir/lower.h"
#include "sim/ir/offload.h"
#include "sim/ir/recompute.h"
#include "sim/model/schedule_def.h"
#include "tests/support/as_written.h"
#include "tests/support/built_schedule.h"
#include "tests/support/fake_gpu.h"
#include "tests/support/gpu_schedules.h"
#include "tests/support/gpu_trained.h"
#include "tests/support/verified_training.h"

namespace bubblescope::tests {
namespace {

Schedule build_sliced(const std::string& name, std::int32_t slices) {
  return build_schedule(find_schedule(name), {{2, 1, 4, slices, {}}, {}, {}});
}

TEST(GpuTraining, EqualsTheSerialReferenceInEverySchedule) {
  std::set<std::string> verified;
  reset_fake_gpu(1);
  for (const std::int32_t chunks : {1, 2}) {
    const GpuSchedules schedules = build_gpu_schedules({2, chunks, 4, 1, {}});
    for (const Schedule& schedule : schedules.trained) {
      SCOPED_TRACE(schedule.name);
      expect_trained(schedule, small_model(2));
      verified.insert(schedule.name);
    }
    // The others state that they cannot have this shape, instead of failing in it.
    for (const auto& [name, reason] : schedules.left_out)
      EXPECT_TRUE(reason == "its stages are a graph" ||
                  reason.starts_with(name + " cannot be built: "))
          << name << ": " << reason;
  }
  EXPECT_GE(verified.size(), 20u);
}

TEST(GpuTraining, GraphsAndSeveralDevicesAndAdamTrainTheSame) {
  exec::TrainingOptions options = small_model(2);
  options.model.blocks_per_stage = 2;
  options.optimizer = {exec::OptimizerOptions::Kind::kAdam, 0.01F};
  for (const std::int32_t devices : {1, 2, 4})
    for (const char* name : {"zb-h1", "dualpipe", "zb-v"}) {
      SCOPED_TRACE(name);
      const FakeGpu& gpu = reset_fake_gpu(devices);
      exec::DeviceOptions device;
      device.graph = true;
      expect_trained(build(name, 4, 8), options, device);
      EXPECT_EQ(gpu.graph_launches, 2);
    }
}

TEST(GpuTraining, RecomputationChangesNothing) {
  reset_fake_gpu(1);
  Schedule schedule = build("1f1b", 3, 6);
  for (RankOrder& ops : schedule.order)
    for (std::size_t at = 0; at < ops.size(); ++at)
      if (ops[at].kind == OpKind::kBackward) {
        Op again = ops[at];
        again.kind = OpKind::kRecompute;
        ops.insert(ops.begin() + static_cast<std::ptrdiff_t>(at++), again);
      }
  expect_trained(schedule, small_model(2));
}

TEST(GpuTraining, AttentionAloneCanBeRecomputed) {
  reset_fake_gpu(1);
  for (const char* name : {"1f1b", "gpipe"}) {
    const Schedule schedule = with_recompute(build(name, 3, 6), {Recompute::kSelective});
    expect_trained(schedule, small_model(2));
  }
}

// Optimizer steps are launches within the step, and the weights equal those of updates after it.
// There are three steps: the two of the graph are Adam's second and third.
TEST(GpuTraining, OptimizerStepsTakeTheirTimeWhereTheProgramHasThem) {
  exec::TrainingOptions options = small_model(2);
  for (const auto kind : {exec::OptimizerOptions::Kind::kSgd, exec::OptimizerOptions::Kind::kAdam})
    for (const bool graph : {false, true}) {
      SCOPED_TRACE(graph);
      reset_fake_gpu(1).times.nanos_per_entry = 100;
      options.optimizer = {kind, 0.01F};
      exec::DeviceOptions device;
      device.graph = graph;
      const Schedule schedule = build("zb-h1", 3, 6);
      const Program program = std::get<Program>(lower(schedule, with_local_optimizer()));
      const Timeline step = expect_trained(schedule, options, device, with_local_optimizer());
      for (InstructionId id = 0; id < program.size(); ++id)
        if (program.instructions[id].op.kind == OpKind::kOptimizer) {
          EXPECT_GT(step.end[id], step.start[id]);
        }
    }
}

// Sequences of 7 tokens give slices of 4 and 3, of 3, 2 and 2, and of 2, 2, 2 and 1. Attention
// looks back over all of them, and the two sequences of a micro-batch are apart in the slices'
// context.
TEST(GpuTraining, SlicesOfSequencesTrainAsWholeOnes) {
  for (const std::int32_t slices : {2, 3, 4})
    for (const char* name : {"seq1f1b", "terapipe"})
      for (const Recompute recompute :
           {Recompute::kNone, Recompute::kSelective, Recompute::kFull}) {
        SCOPED_TRACE(std::string(name) + ", " + std::to_string(slices));
        reset_fake_gpu(2);
        exec::TrainingOptions options = small_model(2);
        options.model.sequence = 7;
        options.model.blocks_per_stage = 2;
        Schedule schedule = build_sliced(name, slices);
        if (recompute != Recompute::kNone) schedule = with_recompute(schedule, {recompute});
        exec::DeviceOptions device;
        device.graph = slices == 3;
        expect_trained(schedule, options, device);
      }
}

// With four ranks, pipedream's first stage keeps four versions of its weights, 2BW's two.
TEST(GpuTraining, EveryMicrobatchReadsItsVersionOfTheWeights) {
  for (const char* name : {"pipedream", "pipedream-2bw", "pipedream-vertical"})
    for (const auto kind :
         {exec::OptimizerOptions::Kind::kSgd, exec::OptimizerOptions::Kind::kAdam})
      for (const bool graph : {false, true}) {
        SCOPED_TRACE(std::string(name) + (graph ? ", graph" : ""));
        reset_fake_gpu(1);
        exec::TrainingOptions options = small_model(2);
        // Larger steps of Adam amplify rounding differences, and there are 36 of them.
        options.optimizer = {kind, kind == exec::OptimizerOptions::Kind::kAdam ? 0.001F : 0.01F};
        exec::DeviceOptions device;
        device.graph = graph;
        expect_trained(build(name, 4, 12), options, device);
      }
}

TEST(GpuTraining, KeepsAsManyVersionsAsAreReadAtOnce) {
  // In 1F1B's steady state rank r of p has p - r micro-batches in flight, and each backward makes a
  // version.
  const std::vector<exec::VersionPlan> one_each = exec::plan_versions(build("pipedream", 4, 12));
  for (std::size_t stage = 0; stage < 4; ++stage) {
    EXPECT_EQ(one_each[stage].live_versions, 4 - static_cast<std::int32_t>(stage));
    EXPECT_EQ(one_each[stage].updates, 12);
  }
  for (const exec::VersionPlan& plan : exec::plan_versions(build("pipedream-2bw", 4, 12))) {
    EXPECT_EQ(plan.live_versions, 2);  // hence the paper's name
    EXPECT_EQ(plan.updates, 3);        // of four micro-batches each
  }
  for (const exec::VersionPlan& plan : exec::plan_versions(build("1f1b", 4, 12))) {
    EXPECT_EQ(plan.live_versions, 1);
    EXPECT_EQ(plan.updates, 0);
  }
}

/// Two ranks whose last micro-batch of four is in no update of its step.
Schedule leave_gradients_over() {
  Schedule schedule = build("pipedream", 2, 4);
  for (std::vector<WeightUse>& uses : schedule.weights) uses.back().written.reset();
  return schedule;
}

TEST(GpuTraining, GradientsThatAStepLeavesOverAreInTheNextOnesFirstUpdate) {
  const Schedule schedule = leave_gradients_over();
  for (const exec::VersionPlan& plan : exec::plan_versions(schedule)) {
    EXPECT_EQ(plan.updates, 3);
    EXPECT_TRUE(plan.leaves_gradients);
  }
  for (const bool graph : {false, true}) {
    reset_fake_gpu(1);
    exec::DeviceOptions device;
    device.graph = graph;
    expect_trained(schedule, small_model(2), device);
  }
}

/// Schedules that offload to another rank and to the host, alone and with recomputation.
std::vector<Schedule> evicting_schedules() {
  return {build("bpipe", 4, 8),
          with_offload(build("1f1b", 4, 8), {}),
          with_offload(build("zb-h1", 4, 8), {}),
          with_offload(build("interleaved", 2, 4, 2), {kWhole, 2}),
          with_offload(with_recompute(build("1f1b", 4, 8), {Recompute::kFull}), {}),
          with_offload(with_recompute(build("1f1b", 4, 8), {Recompute::kSelective}), {}),
          with_offload(build_sliced("seq1f1b", 2), {})};
}

TEST(GpuTraining, ActivationsLeaveAndComeBack) {
  for (const std::int32_t devices : {1, 2, 4})
    for (const bool graph : {false, true})
      for (const Schedule& schedule : evicting_schedules()) {
        SCOPED_TRACE(schedule.name + (graph ? ", graph" : ""));
        FakeGpu& gpu = reset_fake_gpu(devices);
        gpu.times.nanos_per_entry = 3;
        gpu.times.nanos_per_byte = 1;
        exec::DeviceOptions device;
        device.graph = graph;
        expect_trained(schedule, small_model(2), device);
        EXPECT_EQ(gpu.host_bytes > 0, schedule.name != "bpipe");
        EXPECT_EQ(gpu.handles, 0);
        EXPECT_EQ(gpu.bytes, 0);
      }
}

// The memory that a rank holds is what the analysis says of the measured step, whether it offloads
// to another rank or to the host.
TEST(GpuTraining, OffloadedActivationsCountOnTheirTarget) {
  for (const char* name : {"bpipe", "1f1b"}) {
    FakeGpu& gpu = reset_fake_gpu(1);
    gpu.times.nanos_per_entry = 3;
    gpu.times.nanos_per_byte = 1;
    Schedule schedule = build(name, 4, 8);
    if (schedule.offload_target_of_rank.empty()) schedule = with_offload(schedule, {});
    const exec::TrainingOptions options = small_model(2);
    const Trained trained = train_on_gpu(schedule, options);
    ASSERT_TRUE(trained.verification) << trained.execution.breakdown->message;
    const auto memory = exec::device_training_memory(schedule, options, {});
    const Program program = std::get<Program>(lower(schedule));
    std::vector<Bytes> expected(4, 0);
    for (const Timeline& step : trained.execution.steps) {
      const std::vector<Peak> peaks = find_peaks(schedule, program, step, memory);
      for (std::size_t rank = 0; rank < 4; ++rank)
        expected[rank] = std::max(expected[rank], *peaks[rank].bytes);
    }
    EXPECT_EQ(trained.peaks, expected) << name;
  }
}

TEST(GpuTraining, GivesAllMemoryBack) {
  const FakeGpu& gpu = reset_fake_gpu(2);
  train_on_gpu(build("zb-h2", 4, 8), small_model(2));
  EXPECT_EQ(gpu.handles, 0);
  EXPECT_EQ(gpu.bytes, 0);
}

TEST(GpuTraining, EveryFailingCallIsReported) {
  for (const char* call :
       {"allocate", "upload", "download", "launch", "multiply", "clear", "copy",
        "create_multiplier", "begin_capture", "end_capture", "launch_graph", "allocate_on_host"}) {
    SCOPED_TRACE(call);
    FakeGpu& gpu = reset_fake_gpu(1);
    gpu.fails_at = call;
    exec::DeviceOptions device;
    device.graph = true;
    std::string error_text;
    try {
      const Schedule schedule = with_offload(build("gpipe", 2, 4), {});
      const Trained trained = train_on_gpu(schedule, small_model(2), device);
      if (trained.execution.breakdown) error_text = trained.execution.breakdown->message;
    } catch (const Error& error) {
      error_text = error.what();
    }
    EXPECT_EQ(error_text.find("the fake device fails as it was told"), 0u) << error_text;
  }
}

/// The peak of a rank's ops, summed up one after the other.
Bytes walk_peak(const RankOrder& ops, const std::vector<MemoryDelta>& memory) {
  Bytes held = 0;
  Bytes peak = 0;
  for (const Op& op : ops) {
    held += memory[static_cast<std::size_t>(op.stage)](op.kind);
    peak = std::max(peak, held);
  }
  return peak;
}

TEST(GpuTraining, HoldsAsMuchAsItsModelSays) {
  reset_fake_gpu(1);
  for (const char* name : {"gpipe", "zb-h1", "zb-h2"}) {
    const Schedule schedule = build(name, 3, 6);
    const exec::TrainingOptions options = small_model(2);
    const auto memory = exec::device_training_memory(schedule, options, {}).activation_bytes;
    const Trained trained = train_on_gpu(schedule, options);
    for (std::size_t rank = 0; rank < trained.peaks.size(); ++rank) {
      const auto expected = static_cast<double>(walk_peak(schedule.order[rank], memory));
      EXPECT_NEAR(static_cast<double>(trained.peaks[rank]), expected, 0.01 * expected) << name;
    }
  }
}

TEST(GpuTraining, MemoryWithRecomputedAttentionIsThatOfTheHost) {
  const Schedule schedule = with_recompute(build("1f1b", 3, 3), {Recompute::kSelective});
  EXPECT_EQ(exec::device_training_memory(schedule, small_model(2), {}).checkpoint_bytes,
            exec::training_memory(schedule, small_model(2)).checkpoint_bytes);
}

TEST(GpuTraining, MeanMemoryOfSlicesIsThatOfTheHost) {
  exec::TrainingOptions options = small_model(2);
  options.model.sequence = 7;
  options.model.blocks_per_stage = 2;
  for (const Recompute recompute : {Recompute::kSelective, Recompute::kFull}) {
    const Schedule schedule = with_recompute(build_sliced("seq1f1b", 3), {recompute});
    const MemoryModel device = exec::device_training_memory(schedule, options, {});
    const MemoryModel host = exec::training_memory(schedule, options);
    EXPECT_EQ(device.checkpoint_bytes, host.checkpoint_bytes);
    for (std::size_t stage = 0; stage < 2; ++stage)
      EXPECT_EQ(device.activation_bytes[stage].forward, host.activation_bytes[stage].forward);
  }
}

TEST(GpuTraining, ItsMemoryIsThatOfTheHostInFloat32AndHalfInBfloat16) {
  const Schedule schedule = build("1f1b", 3, 3);
  exec::TrainingOptions options = small_model(2);
  options.model.blocks_per_stage = 3;
  const auto host = exec::training_memory(schedule, options).activation_bytes;
  const auto device = exec::device_training_memory(schedule, options, {}).activation_bytes;
  const auto halves = exec::device_training_memory(schedule, options,
                                                   exec::DeviceOptions{exec::Share::kGreen, false,
                                                                       exec::Precision::kBfloat16})
                          .activation_bytes;
  for (std::size_t stage = 0; stage < host.size(); ++stage) {
    EXPECT_EQ(device[stage].forward, host[stage].forward);
    EXPECT_EQ(device[stage].input_grad, host[stage].input_grad);
    EXPECT_EQ(device[stage].weight_grad, host[stage].weight_grad);
    EXPECT_EQ(2 * halves[stage].forward, device[stage].forward);
  }
}

TEST(ActivationPool, TakesFromTheDeviceOnlyWhatItHasNot) {
  const FakeGpu& gpu = reset_fake_gpu(1);
  const exec::GpuRuntime device(fake_gpu_calls());
  exec::ActivationPool pool(device, 0);
  void* const first = pool.acquire(100);
  void* const second = pool.acquire(100);
  EXPECT_NE(first, second);
  EXPECT_EQ(gpu.bytes, 200);
  pool.release(first, 100);
  EXPECT_EQ(pool.acquire(100), first);
  pool.acquire(50);  // no block of this size is free
  EXPECT_EQ(gpu.bytes, 250);
  EXPECT_EQ(pool.held(), 250);
  pool.release(second, 100);
  EXPECT_EQ(pool.held(), 150);
  EXPECT_EQ(pool.peak(), 250);
  EXPECT_EQ(pool.reserved(), 250);
}

}  // namespace
}  // namespace bubblescope::tests

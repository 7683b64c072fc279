// Training on GPUs, with a device that computes on the host: what is launched, on which memory and
// in which order, makes what a single rank makes.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <variant>

#include "exec/execute.h"
#include "exec/gpu/activation_pool.h"
#include "exec/gpu/gpu_job.h"
#include "exec/training/proof.h"
#include "sim/ir/error.h"
#include "sim/ir/lower.h"
#include "sim/ir/recompute.h"
#include "sim/model/schedule_def.h"
#include "tests/support/fake_gpu.h"
#include "tests/support/proven_training.h"

namespace bubblescope {
namespace {

Schedule build(const std::string& name, std::int32_t ranks, std::int32_t chunks,
               std::int32_t microbatches) {
  return build_schedule(find_schedule(name), {{ranks, chunks, microbatches, 1, {}}, {}, {}});
}

struct Trained {
  Execution execution;
  std::optional<Proof> proof;
  std::vector<Bytes> peaks;
};

Trained train(const Schedule& schedule, const TrainingOptions& options,
              const DeviceOptions& device = {}, const LowerOptions& lowering = {}) {
  const Program program = std::get<Program>(lower(schedule, lowering));
  const JobRequest request{schedule, program, &options, {}, Pass::kSpin, device};
  const Job job = start_gpu_job(fake_gpu_calls(), request, {});
  Trained trained{execute(program, *job.backend, "cuda", {1, 2, job.after_step}), {}, {}};
  if (trained.execution.breakdown) return trained;
  trained.proof = prove(job.result(), train_serially(schedule, options, 3));
  trained.peaks = job.peak_bytes();
  return trained;
}

TEST(GpuTraining, EqualsTheSerialReferenceInEverySchedule) {
  int proven = 0;
  reset_fake_gpu(1);
  for (const ScheduleDef& def : Registry<ScheduleDef>::instance().all())
    for (const std::int32_t chunks : {1, 2}) {
      Schedule schedule;
      try {
        schedule = build(def.name, 2, chunks, 4);
      } catch (const Error&) {
        continue;
      }
      if (!schedule.weights.empty() || schedule.shape.slices > 1) continue;
      SCOPED_TRACE(def.name);
      const Trained trained = train(schedule, small_model(2));
      ASSERT_TRUE(trained.proof) << trained.execution.breakdown->message;
      EXPECT_TRUE(trained.proof->matches) << to_string(*trained.proof);
      ++proven;
    }
  EXPECT_GE(proven, 20);
}

TEST(GpuTraining, GraphsAndSeveralDevicesAndAdamTrainTheSame) {
  TrainingOptions options = small_model(2);
  options.model.blocks_per_stage = 2;
  options.optimizer = {OptimizerOptions::Kind::kAdam, 0.01F};
  for (const std::int32_t devices : {1, 2, 4})
    for (const char* name : {"zb-h1", "dualpipe", "zb-v"}) {
      SCOPED_TRACE(name);
      const FakeGpu& gpu = reset_fake_gpu(devices);
      DeviceOptions device;
      device.graph = true;
      const Trained trained = train(build(name, 4, 1, 8), options, device);
      ASSERT_TRUE(trained.proof) << trained.execution.breakdown->message;
      EXPECT_TRUE(trained.proof->matches) << to_string(*trained.proof);
      EXPECT_EQ(gpu.graph_launches, 2);
    }
}

TEST(GpuTraining, RecomputationChangesNothing) {
  reset_fake_gpu(1);
  Schedule schedule = build("1f1b", 3, 1, 6);
  for (RankOrder& ops : schedule.order)
    for (std::size_t at = 0; at < ops.size(); ++at)
      if (ops[at].kind == OpKind::kBackward) {
        Op again = ops[at];
        again.kind = OpKind::kRecompute;
        ops.insert(ops.begin() + static_cast<std::ptrdiff_t>(at++), again);
      }
  const Trained trained = train(schedule, small_model(2));
  ASSERT_TRUE(trained.proof);
  EXPECT_TRUE(trained.proof->matches) << to_string(*trained.proof);
}

TEST(GpuTraining, OnlyAttentionCanBeMadeAgain) {
  reset_fake_gpu(1);
  for (const char* name : {"1f1b", "gpipe"}) {
    const Schedule schedule = with_recompute(build(name, 3, 1, 6), {Recompute::kSelective});
    const Trained trained = train(schedule, small_model(2));
    ASSERT_TRUE(trained.proof) << trained.execution.breakdown->message;
    EXPECT_TRUE(trained.proof->matches) << to_string(*trained.proof);
  }
}

// Its optimizer steps are launches within the step, and the weights are those of updates after it.
TEST(GpuTraining, OptimizerStepsTakeTheirTimeWhereTheProgramHasThem) {
  LowerOptions lowering;
  lowering.update.optimizer = OptimizerMode::kLocal;
  TrainingOptions options = small_model(2);
  for (const auto kind : {OptimizerOptions::Kind::kSgd, OptimizerOptions::Kind::kAdam})
    for (const bool graph : {false, true}) {
      SCOPED_TRACE(graph);
      reset_fake_gpu(1).times.nanos_per_entry = 100;
      options.optimizer = {kind, 0.01F};
      DeviceOptions device;
      device.graph = graph;
      const Schedule schedule = build("zb-h1", 3, 1, 6);
      const Program program = std::get<Program>(lower(schedule, lowering));
      const Trained trained = train(schedule, options, device, lowering);
      ASSERT_TRUE(trained.proof) << trained.execution.breakdown->message;
      EXPECT_TRUE(trained.proof->matches) << to_string(*trained.proof);
      const Timeline& step = trained.execution.steps[1];
      for (InstructionId id = 0; id < program.size(); ++id)
        if (program.instructions[id].op.kind == OpKind::kOptimizer) {
          EXPECT_EQ(step.end[id] > step.start[id],
                    !(graph && kind == OptimizerOptions::Kind::kAdam));
        }
    }
}

TEST(GpuTraining, GivesAllMemoryBack) {
  const FakeGpu& gpu = reset_fake_gpu(2);
  train(build("zb-h2", 4, 1, 8), small_model(2));
  EXPECT_EQ(gpu.handles, 0);
  EXPECT_EQ(gpu.bytes, 0);
}

TEST(GpuTraining, EveryCallThatFailsIsTold) {
  for (const char* call : {"allocate", "upload", "download", "launch", "multiply", "clear", "copy",
                           "create_multiplier", "begin_capture", "end_capture", "launch_graph"}) {
    SCOPED_TRACE(call);
    FakeGpu& gpu = reset_fake_gpu(1);
    gpu.fails_at = call;
    DeviceOptions device;
    device.graph = true;
    std::string told;
    try {
      const Trained trained = train(build("1f1b", 2, 1, 2), small_model(2), device);
      if (trained.execution.breakdown) told = trained.execution.breakdown->message;
    } catch (const Error& error) {
      told = error.what();
    }
    EXPECT_EQ(told.find("the fake device fails as it was told"), 0u) << told;
  }
}

/// What the ops of a rank hold, one after the other.
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
    const Schedule schedule = build(name, 3, 1, 6);
    const TrainingOptions options = small_model(2);
    const auto memory =
        device_training_memory(schedule, options, Precision::kFloat32).activation_bytes;
    const Trained trained = train(schedule, options);
    for (std::size_t rank = 0; rank < trained.peaks.size(); ++rank) {
      const auto expected = static_cast<double>(walk_peak(schedule.order[rank], memory));
      EXPECT_NEAR(static_cast<double>(trained.peaks[rank]), expected, 0.01 * expected) << name;
    }
  }
}

TEST(GpuTraining, WhatIsLeftWhereAttentionIsMadeAgainIsThatOfTheHost) {
  const Schedule schedule = with_recompute(build("1f1b", 3, 1, 3), {Recompute::kSelective});
  EXPECT_EQ(device_training_memory(schedule, small_model(2), Precision::kFloat32).checkpoint_bytes,
            training_memory(schedule, small_model(2)).checkpoint_bytes);
}

TEST(GpuTraining, ItsMemoryIsThatOfTheHostInFloat32AndHalfInBfloat16) {
  const Schedule schedule = build("1f1b", 3, 1, 3);
  TrainingOptions options = small_model(2);
  options.model.blocks_per_stage = 3;
  const auto host = training_memory(schedule, options).activation_bytes;
  const auto device =
      device_training_memory(schedule, options, Precision::kFloat32).activation_bytes;
  const auto halves =
      device_training_memory(schedule, options, Precision::kBfloat16).activation_bytes;
  for (std::size_t stage = 0; stage < host.size(); ++stage) {
    EXPECT_EQ(device[stage].forward, host[stage].forward);
    EXPECT_EQ(device[stage].input_grad, host[stage].input_grad);
    EXPECT_EQ(device[stage].weight_grad, host[stage].weight_grad);
    EXPECT_EQ(2 * halves[stage].forward, device[stage].forward);
  }
}

TEST(ActivationPool, TakesFromTheDeviceOnlyWhatItHasNot) {
  const FakeGpu& gpu = reset_fake_gpu(1);
  const Gpu device(fake_gpu_calls());
  ActivationPool pool(device, 0);
  void* const first = pool.take(100);
  void* const second = pool.take(100);
  EXPECT_NE(first, second);
  EXPECT_EQ(gpu.bytes, 200);
  pool.give(first, 100);
  EXPECT_EQ(pool.take(100), first);
  pool.take(50);  // no piece of this size is free
  EXPECT_EQ(gpu.bytes, 250);
  EXPECT_EQ(pool.held(), 250);
  pool.give(second, 100);
  EXPECT_EQ(pool.held(), 150);
  EXPECT_EQ(pool.peak(), 250);
  EXPECT_EQ(pool.reserved(), 250);
}

}  // namespace
}  // namespace bubblescope

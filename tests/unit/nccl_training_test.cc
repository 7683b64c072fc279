// Processes that train together get the results of a single rank. The GPU is simulated on the host,
// and NCCL over sockets.
#include <gtest/gtest.h>

#include <string>
#include <variant>
#include <vector>

#include "exec/gpu/host/device_memory.h"
#include "exec/nccl/nccl_place.h"
#include "exec/runtime/execute.h"
#include "exec/training/training_identity.h"
#include "sim/ir/error.h"
#include "sim/ir/lower.h"
#include "sim/ir/offload.h"
#include "sim/ir/recompute.h"
#include "sim/ir/shard_stages.h"
#include "sim/model/schedule_def.h"
#include "tests/support/as_written.h"
#include "tests/support/built_schedule.h"
#include "tests/support/fake_gpu.h"
#include "tests/support/fake_nccl.h"
#include "tests/support/forked_ranks.h"
#include "tests/support/nccl_trained.h"
#include "tests/support/verified_training.h"

namespace bubblescope::tests {
namespace {

/// Returns how many schedules passed verification, or the first one that did not.
std::string train_every_schedule(exec::SocketTransport& link) {
  int verified = 0;
  for (const ScheduleDef& def : Registry<ScheduleDef>::instance().all())
    for (const std::int32_t chunks : {1, 2}) {
      if (def.splits_output_layer) continue;  // GPUs train chains
      Schedule schedule;
      try {
        schedule = build(def.name, link.self().count, 2 * link.self().count, chunks);
      } catch (const Error&) {
        continue;
      }
      const NcclTrained trained = train_over_nccl(link, schedule);
      if (trained.verification != "right")
        return def.name + ": " + trained.verification + "; breakdown: " + breakdown_of(trained);
      ++verified;
    }
  return "proven " + std::to_string(verified);
}

TEST(NcclTraining, EqualsTheSerialReferenceInEverySchedule) {
  for (const std::int32_t ranks : {2, 3, 4}) {
    const auto ends = run_ranks(ranks, train_every_schedule);
    for (const RankEnd& end : ends) {
      EXPECT_TRUE(end.ended);
      EXPECT_EQ(end.said, ends[0].said);
    }
    ASSERT_EQ(ends[0].said.rfind("proven ", 0), 0u) << ends[0].said;
    EXPECT_GE(std::stoi(ends[0].said.substr(7)), ranks == 3 ? 15 : 20) << ranks << " ranks";
  }
}

/// Trains some steps from a saved state (empty: from the beginning). Returns the state after them,
/// with the losses and the weights of all processes in digests.
std::string train_part(exec::SocketTransport& link, const Schedule& schedule, std::int32_t steps,
                       exec::Blob& state) {
  reset_fake_gpu(1);
  exec::TrainingOptions options = small_model(2);
  options.optimizer = exec::usual_optimizer(exec::OptimizerOptions::Kind::kAdam);
  const ValidSchedule valid = require_valid(schedule);
  const Program program = std::get<Program>(lower(valid, {}));
  const exec::JobRequest request{valid, program, &options, {}, exec::WaitMode::kSpin, {}};
  const exec::Job job =
      exec::start_nccl_job({fake_gpu_calls(), fake_nccl_calls(), link, 0}, request, {});
  if (!state.empty()) job.resumable->restore(state);
  const exec::Execution execution =
      exec::execute(program, *job.backend, "nccl", {0, steps, job.after_step});
  if (execution.breakdown) return execution.breakdown->message;
  state = job.resumable->save();
  const exec::TrainingResult result = job.result();
  std::string text = std::to_string(exec::digest_weights(result.stages));
  for (const double loss : result.losses) text += ' ' + std::to_string(loss);
  return text;
}

TEST(NcclTraining, ContinuesFromASavedStateBitForBit) {
  for (const std::int32_t processes : {2, 4}) {
    const auto ends = run_ranks(processes, [](exec::SocketTransport& link) -> std::string {
      for (const char* name : {"1f1b", "zb-v", "pipedream", "dualpipe"}) {
        if (link.self().count > 2 && std::string(name) == "pipedream") continue;  // replicas flush
        const Schedule schedule = build(name, 2, 4);
        exec::Blob whole, resumed;
        const std::string expected = train_part(link, schedule, 3, whole);
        train_part(link, schedule, 1, resumed);
        const std::string made = train_part(link, schedule, 2, resumed);
        if (made != expected) return std::string(name) + ": " + made + " instead of " + expected;
        if (whole != resumed) return std::string(name) + ": another state";
      }
      return "equal";
    });
    for (const RankEnd& end : ends) EXPECT_EQ(end.said, "equal");
  }
}

/// Schedules that offload to bpipe's partner rank and to the host, with slices and with
/// recomputation.
std::vector<Schedule> evicting_schedules() {
  const Schedule sliced = build_schedule(find_schedule("seq1f1b"), {{4, 1, 8, 2, {}}, {}, {}});
  return {build("bpipe", 4, 8),
          with_recompute(build("bpipe", 4, 8), {Recompute::kSelective}),
          with_recompute(build("bpipe", 4, 8), {Recompute::kFull}),
          with_offload(build("1f1b", 4, 8), {}),
          with_offload(build("zb-h1", 4, 8), {}),
          with_offload(build("interleaved", 4, 8, 2), {}),
          with_offload(sliced, {})};
}

TEST(NcclTraining, ActivationsWaitInTheHostsMemoryAndInThatOfOtherProcesses) {
  const auto ends = run_ranks(4, [](exec::SocketTransport& link) -> std::string {
    for (const Schedule& schedule : evicting_schedules()) {
      const FakeGpu& gpu = reset_fake_gpu(1);
      const NcclTrained trained = train_over_nccl(link, schedule);
      if (trained.verification != "right")
        return schedule.name + ": " + trained.verification + breakdown_of(trained);
      if (gpu.bytes != 0 || gpu.handles != 0) return schedule.name + ": left memory behind";
    }
    return "right";
  });
  for (const RankEnd& end : ends) EXPECT_EQ(end.said, "right");
}

TEST(NcclTraining, EvictionsGoThroughInEveryModeOfMessages) {
  const auto ends = run_ranks(4, [](exec::SocketTransport& link) -> std::string {
    for (const Named<P2pMode>& mode : kP2pModes) {
      LowerOptions options;
      options.mode = mode.choice;
      const Schedule schedule = build("bpipe", 4, 6);
      if (std::holds_alternative<Deadlock>(lower(schedule, options))) continue;
      const NcclTrained trained = train_over_nccl(link, schedule, options);
      if (trained.verification != "right")
        return std::string(mode.name) + ": " + trained.verification + breakdown_of(trained);
    }
    return "right";
  });
  for (const RankEnd& end : ends) EXPECT_EQ(end.said, "right");
}

// Rank 3 of four holds one micro-batch of its own at a time, and one more that rank 0 evicted to
// it.
TEST(NcclTraining, OffloadedActivationsCountOnTheirTarget) {
  const Schedule schedule = build("bpipe", 4, 8);
  const exec::TrainingOptions options = small_model(2);
  const auto ends = run_ranks(4, [&](exec::SocketTransport& link) {
    const Program program = std::get<Program>(lower(schedule));
    const ValidSchedule valid = require_valid(schedule);
    const exec::JobRequest request{valid, program, &options, {}, exec::WaitMode::kSpin, {}};
    const exec::Job job =
        exec::start_nccl_job({fake_gpu_calls(), fake_nccl_calls(), link, 0}, request, {});
    exec::execute(program, *job.backend, "nccl", {1, 1, job.after_step});
    return std::to_string(job.peak_bytes()[3]);
  });
  const auto memory = exec::device_training_memory(schedule, options, {}).activation_bytes;
  for (const RankEnd& end : ends)
    EXPECT_GE(std::stoll(end.said), memory[3].forward + memory[0].forward);
}

/// Schedules without flushes, with replicas and with both train as on one machine.
TEST(NcclTraining, RanksThatShareAStageAddUpTheirGradientsInEveryUpdate) {
  const auto ends = run_ranks(4, [](exec::SocketTransport& link) -> std::string {
    LowerOptions local;
    local.update.optimizer = OptimizerMode::kLocal;
    for (const std::vector<std::int32_t>& replicas :
         {std::vector<std::int32_t>{2, 1, 1}, {1, 3}, {2, 2}, {3, 1}}) {
      ScheduleRequest request{{4, 1, 6, 1, {}}, {}, {}};
      request.replicas = replicas;
      const Schedule schedule = build_schedule(find_schedule("pipedream"), request);
      const NcclTrained trained = train_over_nccl(link, schedule, local);
      if (trained.verification != "right")
        return std::to_string(replicas.size()) + " stages: " + trained.verification +
               breakdown_of(trained);
    }
    return "right";
  });
  for (const RankEnd& end : ends) EXPECT_EQ(end.said, "right");
}

TEST(NcclTraining, SlicesAndRecomputationCrossProcesses) {
  const auto ends = run_ranks(3, [](exec::SocketTransport& link) -> std::string {
    const Schedule sliced = build_schedule(find_schedule("seq1f1b"), {{3, 1, 6, 3, {}}, {}, {}});
    for (const Recompute recompute : {Recompute::kNone, Recompute::kSelective, Recompute::kFull})
      for (const Schedule& plain :
           {sliced, Schedule(build("1f1b", 3, 6)), Schedule(build("pipedream", 3, 6))}) {
        const Schedule schedule =
            recompute == Recompute::kNone ? plain : with_recompute(plain, {recompute});
        const NcclTrained trained = train_over_nccl(link, schedule);
        if (trained.verification != "right")
          return schedule.name + ": " + trained.verification + breakdown_of(trained);
      }
    return "right";
  });
  for (const RankEnd& end : ends) EXPECT_EQ(end.said, "right");
}

TEST(NcclTraining, EqualsItInEveryModeOfMessages) {
  const auto ends = run_ranks(3, [](exec::SocketTransport& link) -> std::string {
    for (const char* name : {"1f1b", "interleaved"})
      for (const Named<P2pMode>& mode : kP2pModes) {
        LowerOptions options;
        options.mode = mode.choice;
        const Schedule schedule = build(name, 3, 6, std::string(name) == "interleaved" ? 2 : 1);
        if (std::holds_alternative<Deadlock>(lower(schedule, options))) continue;
        const NcclTrained trained = train_over_nccl(link, schedule, options);
        if (trained.verification != "right")
          return std::string(name) + " " + std::string(mode.name) + ": " + trained.verification +
                 breakdown_of(trained);
      }
    return "right";
  });
  for (const RankEnd& end : ends) EXPECT_EQ(end.said, "right");
}

TEST(NcclTraining, ReplicasAreSummedWhereTheProgramSaysSo) {
  const auto ends = run_ranks(4, [](exec::SocketTransport& link) -> std::string {
    for (const char* name : {"dualpipe", "chimera", "gems"})
      for (const GradReduction reduction : {GradReduction::kOverlap, GradReduction::kSerial}) {
        LowerOptions options;
        options.update = {OptimizerMode::kBarrier, reduction};
        const NcclTrained trained = train_over_nccl(link, build(name, 4, 8), options);
        if (trained.verification != "right")
          return std::string(name) + ": " + trained.verification + breakdown_of(trained);
      }
    return "right";
  });
  for (const RankEnd& end : ends) EXPECT_EQ(end.said, "right");
}

TEST(NcclTraining, ReplicasOfAPipelineTrainTogetherOnDataOfTheirOwn) {
  const auto ends = run_ranks(4, [](exec::SocketTransport& link) -> std::string {
    for (const char* name : {"1f1b", "zb-h1", "interleaved", "chimera"})
      for (const GradReduction reduction : {GradReduction::kNone, GradReduction::kOverlap}) {
        LowerOptions options;
        options.update = {OptimizerMode::kLocal, reduction};
        const Schedule schedule = build(name, 2, 4, std::string(name) == "interleaved" ? 2 : 1);
        const NcclTrained trained = train_over_nccl(link, schedule, options);
        if (trained.verification != "right")
          return std::string(name) + ": " + trained.verification + breakdown_of(trained);
      }
    return "right";
  });
  for (const RankEnd& end : ends) EXPECT_EQ(end.said, "right");
}

/// With two or three replicas, each has only its own shards between RESHARD and UNSHARD.
TEST(NcclTraining, CopiesShareTheirParametersOutWhereTheScheduleGathersThem) {
  for (const std::int32_t ranks : {2, 3}) {
    const auto ends = run_ranks(6, [ranks](exec::SocketTransport& link) -> std::string {
      for (const char* name : {"gpipe", "1f1b", "zb-h1", "interleaved", "interleaved-zb"}) {
        const std::int32_t chunks = std::string(name).rfind("interleaved", 0) == 0 ? 4 : 1;
        const NcclTrained trained =
            train_over_nccl(link, shard_stages(build(name, ranks, 2 * ranks, chunks)));
        if (trained.verification != "right")
          return std::string(name) + ": " + trained.verification + breakdown_of(trained);
      }
      return fake_nccl().spreads > 0 ? "right" : "gathered nothing";
    });
    for (const RankEnd& end : ends) EXPECT_EQ(end.said, "right") << ranks << " ranks";
  }
}

TEST(NcclTraining, AGatherThatIsMissingShowsInTheGradients) {
  const auto ends = run_ranks(4, [](exec::SocketTransport& link) {
    const Schedule schedule = shard_stages(build("1f1b", 2, 4));
    Program program = std::get<Program>(lower(schedule, {}));
    for (Instruction& instruction : program.instructions)
      if (instruction.op.kind == OpKind::kUnshard) instruction.op.kind = OpKind::kReshard;
    return train_program_over_nccl(link, schedule, program).verification;
  });
  EXPECT_NE(ends[0].said, "right");
  EXPECT_NE(ends[0].said, "");
}

TEST(NcclTraining, ReleasesEverythingAndReportsItsDevices) {
  const auto ends = run_ranks(2, [](exec::SocketTransport& link) -> std::string {
    FakeGpu& gpu = reset_fake_gpu(1);
    const FakeNccl& nccl = fake_nccl();
    const NcclTrained trained = train_over_nccl(link, build("zb-h1", 2, 4));
    if (gpu.handles != 0 || gpu.bytes != 0 || nccl.communicators != 0) return "left something";
    return trained.device.substr(0, trained.device.rfind(' ', trained.device.rfind(' ') - 1));
  });
  EXPECT_EQ(ends[0].said,
            "Fake GPU, 132 multiprocessors, CUDA driver 13.0; 2 ranks, one process and device "
            "each; NCCL 2.28.9; clocks within");
  EXPECT_EQ(ends[1].said, ends[0].said);
}

TEST(NcclTraining, OneRankNeedsNoOther) {
  const auto ends = run_ranks(1, train_every_schedule);
  ASSERT_EQ(ends[0].said.rfind("proven ", 0), 0u) << ends[0].said;
  EXPECT_GT(std::stoi(ends[0].said.substr(7)), 5) << ends[0].said;
}

}  // namespace
}  // namespace bubblescope::tests

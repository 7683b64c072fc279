// Stages that several ranks hold, on the simulated device: their gradients are summed in an order
// that gives all of them the same sum.
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "exec/gpu/host/gpu_training.h"
#include "sim/ir/error.h"
#include "sim/model/schedule_def.h"
#include "tests/support/as_written.h"
#include "tests/support/built_schedule.h"
#include "tests/support/fake_gpu.h"
#include "tests/support/gpu_trained.h"
#include "tests/support/verified_training.h"

namespace bubblescope::tests {
namespace {

/// The number of ranks per stage.
Schedule build_shared(const std::string& name, const std::vector<std::int32_t>& replicas,
                      std::int32_t microbatches = 6) {
  ScheduleRequest request{{0, 1, microbatches, 1, {}}, {}, {}};
  request.replicas = replicas;
  for (const std::int32_t count : replicas) request.shape.ranks += count;
  return build_schedule(find_schedule(name), request);
}

TEST(GpuReplicas, TrainAsTheSerialReference) {
  exec::TrainingOptions options = small_model();
  for (const std::vector<std::int32_t>& replicas :
       {std::vector<std::int32_t>{2, 1}, {1, 2}, {3, 1}, {1, 3}, {2, 1, 2}})
    for (const std::int32_t devices : {1, 2})
      for (const auto kind :
           {exec::OptimizerOptions::Kind::kSgd, exec::OptimizerOptions::Kind::kAdam}) {
        const bool graph = devices == 2;
        SCOPED_TRACE(testing::PrintToString(replicas) + (graph ? ", two devices, graph" : ""));
        const FakeGpu& gpu = reset_fake_gpu(devices);
        // Larger steps of Adam amplify rounding differences.
        options.optimizer = {kind, kind == exec::OptimizerOptions::Kind::kAdam ? 0.001F : 0.01F};
        exec::DeviceOptions device;
        device.graph = graph;
        expect_trained(build_shared("pipedream", replicas), options, device,
                       with_local_optimizer());
        EXPECT_EQ(gpu.handles, 0);
        EXPECT_EQ(gpu.bytes, 0);
      }
}

TEST(GpuReplicas, OfTwoBufferedWeightsTrainToo) {
  reset_fake_gpu(2);
  expect_trained(build_shared("pipedream-2bw", {2, 2}, 8), small_model(), {},
                 with_local_optimizer());
}

/// Tests every schedule without updates in the Program, with them, and with updates and reductions.
TEST(GpuReplicas, OfBidirectionalSchedulesAreSummedWithinTheStepOrBehindIt) {
  for (const char* name : {"chimera", "dualpipe", "gems"})
    for (const auto optimizer :
         {OptimizerMode::kNone, OptimizerMode::kLocal, OptimizerMode::kBarrier})
      for (const auto reduction : {GradReduction::kNone, GradReduction::kOverlap})
        for (const bool graph : {false, true}) {
          SCOPED_TRACE(std::string(name) + (graph ? ", graph" : ""));
          reset_fake_gpu(graph ? 2 : 1);
          LowerOptions lowering;
          lowering.update = {optimizer, reduction};
          exec::DeviceOptions device;
          device.graph = graph;
          exec::TrainingOptions options = small_model();
          if (graph) options.optimizer = {exec::OptimizerOptions::Kind::kAdam, 0.001F};
          expect_trained(build(name, 4, 8), options, device, lowering);
        }
}

// Copies take a nanosecond per byte, so posts and sums take time.
TEST(GpuReplicas, ReductionsTakeTheirTimeInTheStep) {
  reset_fake_gpu(1).times.nanos_per_byte = 1;
  const Schedule schedule = build("chimera", 4, 8);
  const Program program = std::get<Program>(lower(schedule, with_local_optimizer()));
  const Timeline step = expect_trained(schedule, small_model(), {}, with_local_optimizer());
  std::size_t reductions = 0;
  for (InstructionId id = 0; id < program.size(); ++id)
    if (program.instructions[id].op.kind == OpKind::kReduceGrad) {
      EXPECT_GT(step.end[id], step.start[id]);
      ++reductions;
    }
  EXPECT_EQ(reductions, 16u);  // a post and a sum for each of four stages, in two replicas
}

using Weights = std::vector<std::vector<float>>;

Weights weights_of(const exec::GpuWeights& weights, exec::StageReplica replica) {
  Weights all;
  for (const exec::GpuWeight& weight : weights.stage(replica).weights) {
    const auto* const begin = static_cast<const float*>(weight.master.data);
    all.emplace_back(begin, begin + weight.master.bytes() / 4);
  }
  return all;
}

/// Enqueues some steps in the Program's order and expects equal weights on all replicas.
void expect_equal_replicas(const Schedule& schedule, const LowerOptions& lowering) {
  const Program program = std::get<Program>(lower(schedule, lowering));
  const exec::TrainingOptions options = small_model();
  const ValidSchedule valid = require_valid(schedule);
  const exec::JobRequest request{valid, program, &options, {}, exec::WaitMode::kSpin, {}};
  const exec::GpuMachine machine(fake_gpu_calls(), program.ranks, exec::Share::kStreams);
  exec::GpuTraining training(machine, request);
  const exec::GpuHandle stream = machine.gpu().create_stream(0, nullptr);
  const Weights initial = weights_of(training.weights(), 0);
  for (int step = 0; step < 3; ++step) {
    training.begin_step();
    for (InstructionId id = 0; id < program.size(); ++id) training.enqueue(id, stream.get());
    training.finish_step();
  }
  EXPECT_NE(weights_of(training.weights(), 0), initial);
  for (const std::vector<exec::StageReplica>& sharing :
       training.weights().stage_replicas().sharing())
    for (const exec::StageReplica replica : sharing)
      EXPECT_EQ(weights_of(training.weights(), replica), weights_of(training.weights(), sharing[0]))
          << schedule.name << ", home " << replica;
}

TEST(GpuReplicas, HaveTheSameWeightsBitForBit) {
  reset_fake_gpu(1);
  for (const std::vector<std::int32_t>& replicas : {std::vector<std::int32_t>{3, 1}, {1, 2, 3}})
    expect_equal_replicas(build_shared("pipedream", replicas), with_local_optimizer());
  for (const char* name : {"chimera", "dualpipe"}) {
    expect_equal_replicas(build(name, 4, 8), with_local_optimizer());
    expect_equal_replicas(build(name, 4, 8), {});
  }
}

TEST(GpuReplicas, WithoutFlushesNeedReductionsInTheProgram) {
  reset_fake_gpu(1);
  std::string error_text;
  try {
    train_on_gpu(build_shared("pipedream", {2, 1}), small_model());
  } catch (const Error& error) {
    error_text = error.what();
  }
  EXPECT_EQ(error_text,
            "pipedream: replicas of a stage must sum their gradients in every update; add "
            "`optimizer` local");
}

/// [instruction][other]: whether the other has always ended when the instruction begins.
std::vector<std::vector<bool>> find_before(const Program& program) {
  std::vector<std::vector<bool>> before(program.size(), std::vector<bool>(program.size(), false));
  std::vector<InstructionId> last(program.lanes.size(), kNoInstruction);
  for (InstructionId id = 0; id < program.size(); ++id) {
    const auto follow = [&](InstructionId other) {
      before[id][other] = true;
      for (InstructionId at = 0; at < other; ++at)
        if (before[other][at]) before[id][at] = true;
    };
    const std::uint32_t lane = program.instructions[id].lane;
    if (lane != kNoLane && last[lane] != kNoInstruction) follow(last[lane]);
    if (lane != kNoLane) last[lane] = id;
    for (const InstructionId dependency : program.dependencies_of(id)) follow(dependency);
  }
  return before;
}

/// [rank]: the posts, or the sums, of a stage's reductions, in order.
std::vector<std::vector<InstructionId>> find_reductions(const Program& program, std::int32_t stage,
                                                        Role role) {
  std::vector<std::vector<InstructionId>> found(static_cast<std::size_t>(program.ranks));
  for (InstructionId id = 0; id < program.size(); ++id) {
    const Instruction& at = program.instructions[id];
    if (at.op.kind == OpKind::kReduceGrad && at.op.stage == stage && at.role == role &&
        at.lane != kNoLane)
      found[static_cast<std::size_t>(at.rank)].push_back(id);
  }
  return found;
}

/// The number of posts for which some rank may not have read the post of so many rounds before.
int count_overwrites(const Program& program, std::size_t rounds) {
  const std::vector<std::vector<bool>> before = find_before(program);
  const auto posts = find_reductions(program, 0, Role::kPost);
  const auto sums = find_reductions(program, 0, Role::kWork);
  int overwrites = 0;
  for (std::size_t rank = 0; rank < posts.size(); ++rank)
    for (std::size_t other = 0; other < posts.size(); ++other)
      for (std::size_t round = rounds; round < posts[rank].size(); ++round)
        if (!posts[other].empty())
          overwrites += !before[posts[rank][round]][sums[other][round - rounds]];
  return overwrites;
}

// It follows that two buffers are enough and one is not.
TEST(GpuReplicas, PostAgainOnlyAfterAllHaveReadTheRoundBeforeTheLast) {
  for (const std::vector<std::int32_t>& replicas :
       {std::vector<std::int32_t>{2, 1}, {3, 1}, {3, 2}}) {
    const Program program =
        std::get<Program>(lower(build_shared("pipedream", replicas, 12), with_local_optimizer()));
    EXPECT_EQ(count_overwrites(program, 2), 0);
    EXPECT_GT(count_overwrites(program, 1), 0);
  }
}

// Stage 0 of (2, 1) has 6 micro-batches on two ranks, three on each; stage 1 has all six on one.
TEST(GpuReplicas, PlanTheVersionsOfTheirOwnMicrobatches) {
  const std::vector<exec::VersionPlan> plans =
      exec::plan_versions(build_shared("pipedream", {2, 1}));
  ASSERT_EQ(plans.size(), 3u);
  EXPECT_EQ(plans[0].updates, 3);
  EXPECT_EQ(plans[1].updates, 3);
  EXPECT_EQ(plans[2].updates, 6);
}

}  // namespace
}  // namespace bubblescope::tests

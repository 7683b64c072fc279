// Every schedule trains what a single rank would train.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <variant>

#include "exec/execute.h"
#include "exec/training/proof.h"
#include "exec/training/training.h"
#include "sim/analysis/memory_curve.h"
#include "sim/ir/error.h"
#include "sim/ir/lower.h"
#include "sim/ir/offload.h"
#include "sim/ir/recompute.h"
#include "sim/model/schedule_def.h"

namespace bubblescope {
namespace {

constexpr std::int32_t kSteps = 2;

TrainingOptions small_model() {
  TrainingOptions options;
  options.model = {1, 8, 2, 13, 4, 1};
  return options;
}

std::optional<Schedule> build(const ScheduleDef& def, const Shape& shape) {
  try {
    return build_schedule(def, {shape, Profile::kNone, {}});
  } catch (const Error&) {
    return std::nullopt;
  }
}

Program lowered(const Schedule& schedule, Overlap overlap = Overlap::kAtomic) {
  LowerOptions options;
  options.overlap = overlap;
  return std::get<Program>(lower(schedule, options));
}

Proof train(const Schedule& schedule, const Program& program, const TrainingOptions& options,
            const Injections& injections = {}) {
  Training training(schedule, program, options);
  const auto backend = find_backend("cpu").make({training.work(), injections});
  const ExecuteOptions steps{1, kSteps - 1, [&] { training.finish_step(); }};
  const Execution execution = execute(program, *backend, "cpu", steps);
  EXPECT_FALSE(execution.breakdown) << execution.breakdown->message;
  return prove(training.result(), train_serially(schedule, options, kSteps));
}

/// Whether every stage adds up its micro-batches in the order of the serial reference.
bool adds_in_order(const Schedule& schedule) {
  if (schedule.pipelines > 1) return false;
  for (std::int32_t stage = 0; stage < schedule.stages(); ++stage) {
    std::int32_t last = -1;
    for (const Op& op : schedule.order[schedule.rank_of_stage[stage]]) {
      const bool adds = op.kind == OpKind::kBackward || op.kind == OpKind::kWeightGrad;
      if (op.stage != stage || !adds) continue;
      if (op.microbatch < last) return false;
      last = op.microbatch;
    }
  }
  return true;
}

/// How many trainings were proven.
struct Proven {
  int all = 0;
  int exact = 0;
};

/// Every registered schedule in every one of these shapes that it accepts.
Proven prove_every_schedule(const std::vector<Shape>& shapes) {
  Proven proven;
  for (const ScheduleDef& def : Registry<ScheduleDef>::instance().all())
    for (const Shape& shape : shapes) {
      const auto schedule = build(def, shape);
      if (!schedule || schedule->shape.slices > 1) continue;  // halves of micro-batches
      SCOPED_TRACE(def.name + ", " + std::to_string(shape.ranks) + " ranks, " +
                   std::to_string(shape.chunks) + " chunks, " + std::to_string(shape.microbatches));
      const Proof proof = train(*schedule, lowered(*schedule), small_model());
      EXPECT_TRUE(proof.matches) << to_string(proof);
      EXPECT_TRUE(proof.exact || !adds_in_order(*schedule)) << to_string(proof);
      ++proven.all;
      proven.exact += proof.exact;
    }
  return proven;
}

TEST(Training, EveryScheduleEqualsTheSerialReference) {
  std::vector<Shape> shapes;
  for (std::int32_t ranks = 2; ranks <= 4; ++ranks)
    for (std::int32_t chunks = 1; chunks <= 2; ++chunks)
      for (const std::int32_t microbatches : {1, 2, 3, 4, 6, 8, 12})
        shapes.push_back({ranks, chunks, microbatches, 1, {}});
  const Proven proven = prove_every_schedule(shapes);
  EXPECT_GT(proven.all, 200);
  RecordProperty("proven", proven.all);
  RecordProperty("exact", proven.exact);
}

/// Takes a minute: run by `ctest -C Extended -L extended`.
TEST(Training, DISABLED_EveryScheduleEqualsTheSerialReferenceInLargerShapes) {
  const std::vector<Shape> shapes{{5, 1, 10, 1, {}}, {6, 1, 12, 1, {}}, {8, 1, 16, 1, {}},
                                  {8, 1, 32, 1, {}}, {4, 3, 12, 1, {}}, {6, 2, 24, 1, {}},
                                  {8, 2, 32, 1, {}}, {4, 4, 16, 1, {}}};
  EXPECT_GT(prove_every_schedule(shapes).all, 80);
}

/// What training a schedule leaves behind, when its own staleness is simulated serially.
TrainingResult simulate_staleness(const std::string& name) {
  return train_serially(*build(find_schedule(name), {3, 1, 6, 1, {}}), small_model(), kSteps);
}

TEST(Training, AsynchronousSchedulesAreAsStaleAsTheySay) {
  // Updates within a step change what is trained: neither is what 1F1B trains, nor each other.
  const TrainingResult flushed = simulate_staleness("1f1b");
  const TrainingResult stashed = simulate_staleness("pipedream");
  const TrainingResult doubled = simulate_staleness("pipedream-2bw");
  EXPECT_FALSE(prove(stashed, flushed).matches);
  EXPECT_FALSE(prove(doubled, flushed).matches);
  EXPECT_FALSE(prove(doubled, stashed).matches);
}

TEST(Training, AWrongVersionOfTheWeightsIsFoundByTheProof) {
  // 0B3 of rank 0 reads version 1, as its forward did; here both take version 0 instead.
  const Schedule schedule = *build(find_schedule("pipedream"), {3, 1, 6, 1, {}});
  Schedule fresher = schedule;
  for (std::size_t at = 0; at < fresher.order[0].size(); ++at)
    if (fresher.order[0][at].microbatch == 3) fresher.weights[0][at].read = 0;
  const Program program = lowered(schedule);
  Training training(fresher, program, small_model());
  const auto backend = find_backend("cpu").make({training.work(), {}});
  execute(program, *backend, "cpu", {1, kSteps - 1, [&] { training.finish_step(); }});
  EXPECT_FALSE(prove(training.result(), train_serially(schedule, small_model(), kSteps)).matches);
}

TEST(Training, ADamagedMessageIsFoundAndItsSenderNamed) {
  for (const auto& [name, chunks] :
       {std::pair{"gpipe", 1}, std::pair{"zb-h1", 1}, std::pair{"interleaved", 2}}) {
    const Schedule schedule = *build(find_schedule(name), {2, chunks, 4, 1, {}});
    const Program program = lowered(schedule);
    for (InstructionId message = 0; message < program.size(); ++message) {
      if (!is_message(program.instructions[message])) continue;
      const Instruction& maker = program.instructions[program.dependencies_of(message)[0]];
      for (const auto& [kind, told] :
           {std::pair{Injection::Kind::kWrongSize, "sent a wrong size: 5 x 8 entries instead of"},
            std::pair{Injection::Kind::kGarbage, "sent garbage"}}) {
        Training training(schedule, program, small_model());
        const Injections damage{{maker.rank, to_string(maker.op), kind}};
        const auto backend = find_backend("cpu").make({training.work(), damage});
        const Execution execution = execute(program, *backend, "cpu", {0, 1, {}});
        ASSERT_TRUE(execution.breakdown) << name << " " << to_string(maker.op);
        EXPECT_EQ(
            execution.breakdown->message.find("rank " + std::to_string(maker.rank) + " " + told),
            0u)
            << execution.breakdown->message;
        EXPECT_EQ(execution.steps.back().breakdown, execution.breakdown->message);
      }
    }
  }
}

TEST(Training, OverlappedPairsTrainTheSameUnderEveryRule) {
  const Schedule schedule = *build(find_schedule("dualpipev"), {2, 2, 8, 1, {}});
  for (const Overlap overlap : {Overlap::kSerial, Overlap::kAtomic, Overlap::kFused})
    EXPECT_TRUE(train(schedule, lowered(schedule, overlap), small_model()).matches);
}

TEST(Training, RecomputationChangesNothing) {
  for (const char* name : {"1f1b", "zb-h1", "dualpipe", "interleaved"})
    for (const Recompute recompute : {Recompute::kSelective, Recompute::kFull}) {
      const std::int32_t ranks = std::string(name) == "dualpipe" ? 4 : 3;
      const std::int32_t chunks = std::string(name) == "interleaved" ? 2 : 1;
      const Schedule plain = *build(find_schedule(name), {ranks, chunks, 8, 1, {}});
      const Schedule schedule = with_recompute(plain, {recompute});
      const Proof proof = train(schedule, lowered(schedule), small_model());
      EXPECT_TRUE(proof.matches) << name << ": " << to_string(proof);
      EXPECT_TRUE(proof.exact || !adds_in_order(schedule)) << name << ": " << to_string(proof);
    }
}

TEST(Training, ActivationsThatLeaveMemoryComeBackWhole) {
  for (const char* name : {"bpipe", "gpipe", "zb-h2", "group-interleaved", "chimera"}) {
    const std::int32_t chunks = std::string(name) == "group-interleaved" ? 2 : 1;
    Schedule schedule = *build(find_schedule(name), {4, chunks, 8, 1, {}});
    schedule = with_recompute(std::move(schedule), {Recompute::kSelective});
    if (schedule.keeper_of_rank.empty()) schedule = with_offload(std::move(schedule), {});
    const Proof proof = train(schedule, lowered(schedule), small_model());
    EXPECT_TRUE(proof.matches) << name << ": " << to_string(proof);
  }
}

TEST(Training, StepsWithinTheProgramTrainTheSame) {
  TrainingOptions options = small_model();
  options.optimizer = {OptimizerOptions::Kind::kAdam, 0.01F};
  for (const char* name : {"1f1b", "zb-h2", "chimera", "dualpipe", "chimera-doubling", "bfs"})
    for (const OptimizerMode mode :
         {OptimizerMode::kLocal, OptimizerMode::kBarrier, OptimizerMode::kPostValidation})
      for (const GradReduction reduction : {GradReduction::kNone, GradReduction::kOverlap}) {
        SCOPED_TRACE(name);
        const Schedule schedule = *build(find_schedule(name), {4, 1, 8, 1, {}});
        LowerOptions lower_options;
        lower_options.update = {mode, reduction};
        const Program program = std::get<Program>(lower(schedule, lower_options));
        const Proof inside = train(schedule, program, options);
        EXPECT_TRUE(inside.matches) << to_string(inside);
        EXPECT_EQ(inside.exact, train(schedule, lowered(schedule), options).exact);
      }
}

TEST(Training, AdamTrainsTheSameToo) {
  TrainingOptions options = small_model();
  options.optimizer = {OptimizerOptions::Kind::kAdam, 0.01F};
  for (const char* name : {"zb-h1", "dualpipe", "pipedream", "pipedream-2bw"}) {
    const Schedule schedule = *build(find_schedule(name), {4, 1, 8, 1, {}});
    const Proof proof = train(schedule, lowered(schedule), options);
    EXPECT_TRUE(proof.matches) << to_string(proof);
  }
}

/// The program without the dependencies that `is_dropped` picks.
Program without(const Program& program,
                const std::function<bool(InstructionId, InstructionId)>& is_dropped) {
  Program result = program;
  result.dependencies.clear();
  result.dependency_begin.clear();
  for (InstructionId id = 0; id < program.size(); ++id) {
    result.dependency_begin.push_back(static_cast<std::uint32_t>(result.dependencies.size()));
    for (const InstructionId dependency : program.dependencies_of(id))
      if (!is_dropped(id, dependency)) result.dependencies.push_back(dependency);
  }
  result.dependency_begin.push_back(static_cast<std::uint32_t>(result.dependencies.size()));
  return result;
}

/// Makes what is no longer waited for late, so that whoever should have waited comes first.
Injection delay_maker(const Program& program, InstructionId message) {
  const Instruction& maker = program.instructions[program.dependencies_of(message)[0]];
  return {maker.rank, to_string(maker.op), Injection::Kind::kDelay, 20'000'000};
}

/// The op that reads what a message carries.
InstructionId reader_of(const Program& program, const Op& message) {
  const bool goes_forward = message.kind == OpKind::kSendForward;
  for (InstructionId id = 0; id < program.size(); ++id) {
    const Op& op = program.instructions[id].op;
    const bool reads = goes_forward ? op.kind == OpKind::kForward : gives_input_grad(op.kind);
    if (reads && op.microbatch == message.microbatch &&
        op.stage == message.stage + (goes_forward ? 1 : -1))
      return id;
  }
  return 0;
}

/// Whether lanes and dependencies still make `later` wait for `earlier`: then nothing is missing.
bool waits_for(const Program& program, InstructionId later, InstructionId earlier) {
  std::vector<bool> after(program.size(), false);
  std::vector<bool> lane_after(program.lanes.size(), false);
  for (InstructionId id = earlier; id <= later; ++id) {
    const std::uint32_t lane = program.instructions[id].lane;
    after[id] = id == earlier || (lane != kNoLane && lane_after[lane]);
    for (const InstructionId dependency : program.dependencies_of(id))
      after[id] = after[id] || after[dependency];
    if (lane != kNoLane) lane_after[lane] = after[id];
  }
  return after[later];
}

TEST(Training, AMissingDependencyIsFoundByTheProof) {
  int found = 0;
  for (const char* name : {"gpipe", "zb-h1", "dualpipe"}) {
    const Schedule schedule = *build(find_schedule(name), {2, 1, 4, 1, {}});
    const Program program = lowered(schedule);
    for (InstructionId message = 0; message < program.size(); ++message) {
      if (!is_message(program.instructions[message])) continue;
      SCOPED_TRACE(std::string(name) + " " + to_string(program.instructions[message].op));
      const Injections late{delay_maker(program, message)};
      const Program leaves_early =
          without(program, [&](InstructionId id, InstructionId) { return id == message; });
      EXPECT_FALSE(train(schedule, leaves_early, small_model(), late).matches);
      const Program not_awaited = without(
          program, [&](InstructionId, InstructionId dependency) { return dependency == message; });
      const InstructionId reader = reader_of(program, program.instructions[message].op);
      if (waits_for(not_awaited, reader, program.dependencies_of(message)[0])) continue;
      EXPECT_FALSE(train(schedule, not_awaited, small_model(), late).matches);
      ++found;
    }
  }
  EXPECT_GE(found, 20);
}

/// Without the edge from a copy to its user, the user finds nothing.
TEST(Training, ABackwardThatDoesNotWaitForItsLoadIsFound) {
  const Schedule schedule = with_offload(*build(find_schedule("gpipe"), {2, 1, 6, 1, {}}), {});
  const Program program = lowered(schedule);
  int loads = 0;
  for (InstructionId load = 0; load < program.size(); ++load) {
    if (program.instructions[load].op.kind != OpKind::kLoad) continue;
    const Program not_awaited = without(
        program, [&](InstructionId, InstructionId dependency) { return dependency == load; });
    Training training(schedule, not_awaited, small_model());
    Work work = training.work();
    const auto slow_loads = [&](const Turn& turn) {
      if (turn.id == load) turn.clock.pass_until(turn.clock.now() + 20'000'000, Pass::kSleep);
      return work(turn);
    };
    const auto backend = find_backend("cpu").make({slow_loads, {}});
    EXPECT_TRUE(execute(not_awaited, *backend, "cpu", {0, 1, {}}).breakdown);
    ++loads;
  }
  EXPECT_GT(loads, 2);
}

TEST(Training, SlicedSequencesSharedStagesAndOddHeadsAreRefused) {
  Schedule schedule = *build(find_schedule("1f1b"), {2, 1, 2, 1, {}});
  const Program program = lowered(schedule);
  TrainingOptions options = small_model();
  options.model.heads = 3;
  EXPECT_THROW(Training(schedule, program, options), Error);
  schedule.shape.slices = 2;
  EXPECT_THROW(Training(schedule, program, small_model()), Error);
  ScheduleRequest shared{{3, 1, 6, 1, {}}, {}, {}};
  shared.replicas = {2, 1};
  const Schedule replicated = build_schedule(find_schedule("pipedream"), shared);
  EXPECT_THROW(Training(replicated, lowered(replicated), small_model()), Error);
}

/// A copy reaches the memory of its own process alone.
TEST(Training, RefusesToEvictIntoAnotherProcess) {
  const Schedule schedule = *build(find_schedule("bpipe"), {4, 1, 8, 1, {}});
  const Program program = lowered(schedule);
  const auto train_as = [&](std::int32_t rank) {
    const Processes one_of_four(Processes::Link{rank, 4, {}, {}, [] {}});
    const Training training(schedule, program, small_model(), one_of_four);
  };
  EXPECT_THROW(train_as(0), Error);
  EXPECT_THROW(train_as(2), Error);  // it evicts nothing, but would wait for those that do
}

/// The peaks that were measured are those of the memory curve, recomputed and evicted parts too.
TEST(Training, HoldsAsMuchOfWhatItRecomputesOrEvictsAsTheCurveSays) {
  const TrainingOptions options = small_model();
  for (const Recompute recompute : {Recompute::kNone, Recompute::kSelective, Recompute::kFull})
    for (const char* name : {"1f1b", "gpipe", "bpipe"}) {
      Schedule schedule =
          with_recompute(*build(find_schedule(name), {4, 1, 6, 1, {}}), {recompute});
      if (std::string(name) == "gpipe") schedule = with_offload(std::move(schedule), {});
      const Program program = lowered(schedule);
      Training training(schedule, program, options);
      const auto backend = find_backend("cpu").make({training.work(), {}});
      const Execution execution = execute(program, *backend, "cpu", {0, 1, {}});
      const std::vector<Peak> peaks =
          find_peaks(schedule, program, execution.steps[0], training_memory(schedule, options));
      // Between the halves of a full backward a stage holds a little more; what is measured by the
      // clock may miss or add one micro-batch that was on its way.
      const bool copies = !schedule.keeper_of_rank.empty();
      for (std::size_t rank = 0; rank < peaks.size(); ++rank)
        EXPECT_NEAR(static_cast<double>(training.peak_bytes()[rank]),
                    static_cast<double>(*peaks[rank].bytes),
                    (copies ? 0.5 : 0.05) * static_cast<double>(*peaks[rank].bytes))
            << name << " rank " << rank;
    }
}

TEST(Training, HoldsAsMuchMemoryAsItsModelSays) {
  for (const char* name : {"gpipe", "1f1b", "zb-h2"}) {
    const Schedule schedule = *build(find_schedule(name), {3, 1, 6, 1, {}});
    const Program program = lowered(schedule);
    const TrainingOptions options = small_model();
    Training training(schedule, program, options);
    const auto backend = find_backend("cpu").make({training.work(), {}});
    execute(program, *backend, "cpu", {0, 1, {}});
    const std::vector<MemoryDelta> memory = training_memory(schedule, options).activation_bytes;
    const std::vector<Bytes> peaks = training.peak_bytes();
    for (std::size_t rank = 0; rank < peaks.size(); ++rank) {
      Bytes held = 0;
      Bytes peak = 0;
      for (const Op& op : schedule.order[rank]) {
        held += memory[static_cast<std::size_t>(op.stage)](op.kind);
        peak = std::max(peak, held);
      }
      // Between the halves of a full backward a stage may hold a little more.
      EXPECT_NEAR(static_cast<double>(peaks[rank]), static_cast<double>(peak),
                  0.01 * static_cast<double>(peak))
          << name << " rank " << rank;
    }
  }
}

}  // namespace
}  // namespace bubblescope

// Every schedule trains the same as a single rank.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <variant>

#include "sim/analysis/memory_curve.h"
#include "sim/ir/error.h"
#include "sim/ir/offload.h"
#include "sim/ir/recompute.h"
#include "tests/support/as_written.h"
#include "tests/support/error_text.h"
#include "tests/support/lone_transport.h"
#include "tests/support/verified_training.h"

namespace bubblescope::tests {
namespace {

/// Whether every stage accumulates its micro-batches in the order of the serial reference, and
/// nothing is summed over ranks: the softmax of a split output layer is.
bool adds_in_order(const Schedule& schedule) {
  if (schedule.pipelines > 1 || schedule.shape.slices > 1 || schedule.side_stages > 0) return false;
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

/// The number of verified trainings.
struct Verified {
  int all = 0;
  int exact = 0;
};

/// Every registered schedule in every one of these shapes that it accepts.
Verified verify_every_schedule(const std::vector<Shape>& shapes) {
  Verified verified;
  for (const ScheduleDef& def : Registry<ScheduleDef>::instance().all())
    for (const Shape& shape : shapes) {
      const auto schedule = build_if_legal(def, shape);
      if (!schedule) continue;
      SCOPED_TRACE(def.name + ", " + std::to_string(shape.ranks) + " ranks, " +
                   std::to_string(shape.chunks) + " chunks, " + std::to_string(shape.microbatches) +
                   " micro-batches, " + std::to_string(schedule->shape.slices) + " slices");
      const exec::Verification verification = train(*schedule, lowered(*schedule), small_model());
      EXPECT_TRUE(verification.matches) << to_string(verification);
      EXPECT_TRUE(verification.exact || !adds_in_order(*schedule)) << to_string(verification);
      ++verified.all;
      verified.exact += verification.exact;
    }
  return verified;
}

TEST(Training, EveryScheduleEqualsTheSerialReference) {
  std::vector<Shape> shapes;
  for (std::int32_t ranks = 2; ranks <= 4; ++ranks)
    for (std::int32_t chunks = 1; chunks <= 2; ++chunks)
      for (const std::int32_t microbatches : {1, 2, 3, 4, 6, 8, 12})
        shapes.push_back({ranks, chunks, microbatches, 1, {}});
  // Two, three and four slices of the four tokens: of equal length, or the first one longer.
  for (const Shape& shape :
       {Shape{2, 1, 3, 2, {}}, Shape{2, 2, 2, 2, {}}, Shape{3, 1, 4, 3, {}}, Shape{3, 2, 2, 3, {}},
        Shape{4, 1, 2, 4, {}}, Shape{4, 2, 3, 4, {}}, Shape{2, 1, 1, 3, {}}, Shape{4, 1, 5, 2, {}}})
    shapes.push_back(shape);
  const Verified verified = verify_every_schedule(shapes);
  EXPECT_GT(verified.all, 200);
  RecordProperty("proven", verified.all);
  RecordProperty("exact", verified.exact);
}

/// Takes a minute: run by `ctest -C Extended -L extended`.
TEST(Training, DISABLED_EveryScheduleEqualsTheSerialReferenceInLargerShapes) {
  const std::vector<Shape> shapes{{5, 1, 10, 1, {}}, {6, 1, 12, 1, {}}, {8, 1, 16, 1, {}},
                                  {8, 1, 32, 1, {}}, {4, 3, 12, 1, {}}, {6, 2, 24, 1, {}},
                                  {8, 2, 32, 1, {}}, {4, 4, 16, 1, {}}};
  EXPECT_GT(verify_every_schedule(shapes).all, 80);
}

/// The result of training a schedule whose staleness is simulated serially.
exec::TrainingResult simulate_staleness(const std::string& name) {
  return exec::train_serially(*build_if_legal(find_schedule(name), {3, 1, 6, 1, {}}), small_model(),
                              kVerifiedSteps);
}

TEST(Training, AsynchronousSchedulesAreAsStaleAsTheySay) {
  // Updates within a step change the result: it differs from 1F1B's and between the two schedules.
  const exec::TrainingResult flushed = simulate_staleness("1f1b");
  const exec::TrainingResult stashed = simulate_staleness("pipedream");
  const exec::TrainingResult doubled = simulate_staleness("pipedream-2bw");
  EXPECT_FALSE(exec::verify(stashed, flushed).matches);
  EXPECT_FALSE(exec::verify(doubled, flushed).matches);
  EXPECT_FALSE(exec::verify(doubled, stashed).matches);
}

TEST(Training, OverlappedPairsTrainTheSameUnderEveryRule) {
  const Schedule schedule = *build_if_legal(find_schedule("dualpipev"), {2, 2, 8, 1, {}});
  for (const Overlap overlap : {Overlap::kSerial, Overlap::kAtomic, Overlap::kFused})
    EXPECT_TRUE(train(schedule, lowered(schedule, overlap), small_model()).matches);
}

TEST(Training, RecomputationChangesNothing) {
  for (const char* name : {"1f1b", "zb-h1", "dualpipe", "interleaved"})
    for (const Recompute recompute : {Recompute::kSelective, Recompute::kFull}) {
      const std::int32_t ranks = std::string(name) == "dualpipe" ? 4 : 3;
      const std::int32_t chunks = std::string(name) == "interleaved" ? 2 : 1;
      const Schedule plain = *build_if_legal(find_schedule(name), {ranks, chunks, 8, 1, {}});
      const Schedule schedule = with_recompute(plain, {recompute});
      const exec::Verification verification = train(schedule, lowered(schedule), small_model());
      EXPECT_TRUE(verification.matches) << name << ": " << to_string(verification);
      EXPECT_TRUE(verification.exact || !adds_in_order(schedule))
          << name << ": " << to_string(verification);
    }
}

TEST(Training, ActivationsThatLeaveMemoryComeBackWhole) {
  for (const char* name : {"bpipe", "gpipe", "zb-h2", "group-interleaved", "chimera"}) {
    const std::int32_t chunks = std::string(name) == "group-interleaved" ? 2 : 1;
    Schedule schedule = *build_if_legal(find_schedule(name), {4, chunks, 8, 1, {}});
    schedule = with_recompute(schedule, {Recompute::kSelective});
    if (schedule.offload_target_of_rank.empty()) schedule = with_offload(schedule, {});
    const exec::Verification verification = train(schedule, lowered(schedule), small_model());
    EXPECT_TRUE(verification.matches) << name << ": " << to_string(verification);
  }
}

TEST(Training, StepsWithinTheProgramTrainTheSame) {
  exec::TrainingOptions options = small_model();
  options.optimizer = {exec::OptimizerOptions::Kind::kAdam, 0.01F};
  for (const char* name : {"1f1b", "zb-h2", "chimera", "dualpipe", "chimera-doubling", "bfs"})
    for (const OptimizerMode mode :
         {OptimizerMode::kLocal, OptimizerMode::kBarrier, OptimizerMode::kPostValidation})
      for (const GradReduction reduction : {GradReduction::kNone, GradReduction::kOverlap}) {
        SCOPED_TRACE(name);
        const Schedule schedule = *build_if_legal(find_schedule(name), {4, 1, 8, 1, {}});
        LowerOptions lower_options;
        lower_options.update = {mode, reduction};
        const Program program = std::get<Program>(lower(schedule, lower_options));
        const exec::Verification inside = train(schedule, program, options);
        EXPECT_TRUE(inside.matches) << to_string(inside);
        EXPECT_EQ(inside.exact, train(schedule, lowered(schedule), options).exact);
      }
}

TEST(Training, AdamTrainsTheSameToo) {
  exec::TrainingOptions options = small_model();
  options.optimizer = {exec::OptimizerOptions::Kind::kAdam, 0.01F};
  for (const char* name : {"zb-h1", "dualpipe", "pipedream", "pipedream-2bw"}) {
    const Schedule schedule = *build_if_legal(find_schedule(name), {4, 1, 8, 1, {}});
    const exec::Verification verification = train(schedule, lowered(schedule), options);
    EXPECT_TRUE(verification.matches) << to_string(verification);
  }
}

TEST(Training, EverySlicingScheduleCutsSequencesAnywhere) {
  exec::TrainingOptions options = small_model();
  options.model.sequence = 7;  // slices of 4 and 3; of 3, 2 and 2; of 2, 2, 2 and 1
  options.model.batch = 2;
  options.model.blocks_per_stage = 2;
  for (const char* name : {"seq1f1b", "terapipe", "slimpipe", "chimera-halving"})
    for (const Recompute recompute : {Recompute::kNone, Recompute::kSelective, Recompute::kFull})
      for (const std::int32_t slices : {2, 3, 4}) {
        const Shape shape{2, 1, 4, slices, {}};
        const auto plain = build_if_legal(find_schedule(name), shape);
        if (!plain) continue;  // slimpipe's slices must fill the ranks, and chimera has two
        const Schedule schedule = with_recompute(*plain, {recompute});
        const exec::Verification verification = train(schedule, lowered(schedule), options);
        EXPECT_TRUE(verification.matches)
            << name << ", " << slices << ": " << to_string(verification);
      }
}

TEST(Training, ReplicasAreAsStaleAsTheySayAndAddUpTheirGradients) {
  for (const std::vector<std::int32_t>& replicas :
       {std::vector<std::int32_t>{2, 1}, {1, 2}, {2, 2}, {3, 1}, {1, 3}, {2, 1, 2}}) {
    ScheduleRequest request{{0, 1, 6, 1, {}}, {}, {}};
    request.replicas = replicas;
    for (const std::int32_t count : replicas) request.shape.ranks += count;
    const Schedule schedule = build_schedule(find_schedule("pipedream"), request);
    LowerOptions options;
    options.update.optimizer = OptimizerMode::kLocal;
    const Program program = std::get<Program>(lower(schedule, options));
    const exec::Verification verification = train(schedule, program, small_model());
    EXPECT_TRUE(verification.exact) << replicas.size() << " stages: " << to_string(verification);
  }
}

TEST(Training, GradientsThatAStepLeavesOverAreInTheNextOnesFirstUpdate) {
  Schedule schedule = *build_if_legal(find_schedule("pipedream"), {2, 1, 4, 1, {}});
  for (std::vector<WeightUse>& uses : schedule.weights) uses.back().written.reset();
  const exec::Verification verification = train(schedule, lowered(schedule), small_model());
  EXPECT_TRUE(verification.exact) << to_string(verification);
}

TEST(Training, WhatCannotBeTrainedIsRefused) {
  const auto refusal = [](const Schedule& schedule, const exec::TrainingOptions& options) {
    return error_of([&] { exec::Training(schedule, lowered(schedule), options); });
  };
  exec::TrainingOptions odd_heads = small_model();
  odd_heads.model.heads = 3;
  EXPECT_EQ(refusal(*build_if_legal(find_schedule("1f1b"), {2, 1, 2, 1, {}}), odd_heads),
            "3 heads cannot divide a width of 8; choose a multiple as the width");
  EXPECT_EQ(refusal(*build_if_legal(find_schedule("seq1f1b"), {2, 1, 2, 5, {}}), small_model()),
            "sequences of 4 tokens cannot be split into 5 slices; take `seq_length` 5 or more");
  ScheduleRequest shared{{3, 1, 6, 1, {}}, {}, {}};
  shared.replicas = {2, 1};
  EXPECT_EQ(refusal(build_schedule(find_schedule("pipedream"), shared), small_model()),
            "pipedream: replicas of a stage must sum their gradients in every update; add "
            "`optimizer` local");
  shared.shape.microbatches = 5;
  EXPECT_EQ(refusal(build_schedule(find_schedule("pipedream"), shared), small_model()),
            "5 micro-batches cannot fill the 2 replicas of stage 0; take a multiple of it as "
            "`microbatches` to train");
}

InstructionId find_copy(const Program& program, const std::string& name) {
  for (InstructionId id = 0; id < program.size(); ++id)
    if (to_string(program.instructions[id].op) == name) return id;
  throw Error("there is no " + name);
}

/// Rank 3 of bpipe on four ranks stores what rank 0 evicts, even if it is another process.
TEST(Training, KeepsWhatAnotherProcessEvictsUntilItIsLoaded) {
  const Schedule schedule = *build_if_legal(find_schedule("bpipe"), {4, 1, 8, 1, {}});
  const Program program = lowered(schedule);
  LoneTransport transport({3, 4});
  const exec::Processes last_of_four(transport, {});
  exec::Training target_training(schedule, program, small_model(), last_of_four);
  const exec::PayloadCodec payload_codec = target_training.payload_codec();
  const InstructionId evict = find_copy(program, "0EVICT2");
  const InstructionId load = find_copy(program, "0LOAD2");
  EXPECT_TRUE(payload_codec.keep(load, {}).empty());  // there is nothing yet
  exec::SavedForward kept;
  kept.saved.tokens.inputs = {3, 1};
  kept.saved.blocks.resize(1);
  kept.saved.blocks[0].mixed = exec::Matrix(2, 8);
  kept.saved.blocks[0].mixed.values[5] = 7;
  const exec::Blob bytes = exec::to_bytes(kept);
  EXPECT_TRUE(payload_codec.keep(evict, bytes).empty());
  // 2 x 8 numbers of four bytes on rank 3.
  EXPECT_EQ(target_training.stages().peak_bytes(), (std::vector<Bytes>{0, 0, 0, 64}));
  const exec::Blob back = payload_codec.keep(load, {});
  EXPECT_EQ(back, bytes);
  const exec::SavedForward read = exec::read_saved_forward(back);
  EXPECT_EQ(read.saved.tokens.inputs, kept.saved.tokens.inputs);
  EXPECT_EQ(read.saved.blocks.at(0).mixed.values, kept.saved.blocks[0].mixed.values);
  EXPECT_TRUE(payload_codec.keep(load, {}).empty());  // it has been released
  EXPECT_TRUE(payload_codec.keep(evict, bytes).empty());
  EXPECT_EQ(target_training.stages().peak_bytes()[3], 64);  // one at a time
}

TEST(Training, RefusesWhatCameBackCut) {
  exec::SavedForward kept;
  kept.input = exec::Matrix(2, 8);
  exec::Blob bytes = exec::to_bytes(kept);
  bytes.resize(bytes.size() - 5);
  EXPECT_EQ(error_of([&] { exec::read_saved_forward(bytes); }),
            "there are fewer bytes than announced; they were damaged, or not all processes run "
            "the same program");
}

/// The measured peaks are those of the memory curve, including recomputed and evicted parts.
TEST(Training, HoldsAsMuchOfWhatItRecomputesOrEvictsAsTheCurveSays) {
  const exec::TrainingOptions options = small_model();
  for (const Recompute recompute : {Recompute::kNone, Recompute::kSelective, Recompute::kFull})
    for (const char* name : {"1f1b", "gpipe", "bpipe"}) {
      Schedule schedule =
          with_recompute(*build_if_legal(find_schedule(name), {4, 1, 6, 1, {}}), {recompute});
      if (std::string(name) == "gpipe") schedule = with_offload(schedule, {});
      const Program program = lowered(schedule);
      exec::Training training(schedule, program, options);
      const auto backend = exec::find_backend("cpu").make({training.work(), {}}, program);
      const exec::Execution execution = exec::execute(program, *backend, "cpu", {0, 1, {}});
      const std::vector<Peak> peaks = find_peaks(schedule, program, execution.steps[0],
                                                 exec::training_memory(schedule, options));
      // Between the halves of a full backward a stage holds a little more; a measurement by the
      // clock may miss or add one micro-batch in transit.
      const bool copies = !schedule.offload_target_of_rank.empty();
      for (std::size_t rank = 0; rank < peaks.size(); ++rank)
        EXPECT_NEAR(static_cast<double>(training.stages().peak_bytes()[rank]),
                    static_cast<double>(*peaks[rank].bytes),
                    (copies ? 0.5 : 0.05) * static_cast<double>(*peaks[rank].bytes))
            << name << " rank " << rank;
    }
}

TEST(Training, HoldsAsMuchMemoryAsItsModelSays) {
  for (const char* name : {"gpipe", "1f1b", "zb-h2"}) {
    const Schedule schedule = *build_if_legal(find_schedule(name), {3, 1, 6, 1, {}});
    const Program program = lowered(schedule);
    const exec::TrainingOptions options = small_model();
    exec::Training training(schedule, program, options);
    const auto backend = exec::find_backend("cpu").make({training.work(), {}}, program);
    exec::execute(program, *backend, "cpu", {0, 1, {}});
    const std::vector<MemoryDelta> memory =
        exec::training_memory(schedule, options).activation_bytes;
    const std::vector<Bytes> peaks = training.stages().peak_bytes();
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
}  // namespace bubblescope::tests

// A training that is saved and restored between two steps continues bit for bit.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "exec/training/matrix_blob.h"
#include "exec/training/training_identity.h"
#include "sim/ir/error.h"
#include "tests/support/error_text.h"
#include "tests/support/verified_training.h"

namespace bubblescope::tests {
namespace {

constexpr std::int32_t kSteps = 4;

/// The result of some steps from a saved state (empty: from the beginning), and the state after
/// them.
struct TrainedPart {
  exec::TrainingResult result;
  exec::Blob state;
};

TrainedPart train_part(const Schedule& schedule, const exec::TrainingOptions& options,
                       const exec::Blob& state, std::int32_t steps) {
  const Program program = lowered(schedule);
  exec::Training training(schedule, program, options);
  if (!state.empty()) training.stages().restore(state);
  const auto backend = exec::find_backend("cpu").make({training.work(), {}}, program);
  const exec::Execution execution =
      exec::execute(program, *backend, "cpu", {0, steps, [&] { training.finish_step(); }});
  EXPECT_FALSE(execution.breakdown);
  return {training.stages().result(), training.stages().save()};
}

void expect_equal(const exec::TrainingResult& left, const exec::TrainingResult& right) {
  EXPECT_EQ(left.losses, right.losses);
  EXPECT_EQ(left.gradients, right.gradients);
  EXPECT_EQ(exec::digest_weights(left.stages), exec::digest_weights(right.stages));
}

TEST(Checkpoint, EveryScheduleContinuesBitForBit) {
  using Kind = exec::OptimizerOptions::Kind;
  int checked = 0;
  int with_leftovers = 0;
  for (const ScheduleDef& def : Registry<ScheduleDef>::instance().all())
    for (const std::int32_t microbatches : {4, 7}) {
      const auto schedule = build_if_legal(def, {2, 1, microbatches, 1, {}});
      if (!schedule) continue;
      SCOPED_TRACE(def.name + ", " + std::to_string(microbatches) + " micro-batches");
      exec::TrainingOptions options = small_model();
      options.optimizer = exec::usual_optimizer(checked % 2 == 0 ? Kind::kAdam : Kind::kSgd);
      const TrainedPart whole = train_part(*schedule, options, {}, kSteps);
      const TrainedPart begun = train_part(*schedule, options, {}, 1);
      const TrainedPart resumed = train_part(*schedule, options, begun.state, kSteps - 1);
      expect_equal(resumed.result, whole.result);
      EXPECT_EQ(resumed.state, whole.state);
      // A state with gradients, whether left over or of the last update, is larger.
      with_leftovers += !schedule->weights.empty();
      ++checked;
    }
  EXPECT_GT(checked, 30);
  EXPECT_GT(with_leftovers, 1);
}

TEST(Checkpoint, AdamsMomentsAndStepsCount) {
  const auto schedule = build_if_legal(find_schedule("1f1b"), {2, 1, 4, 1, {}});
  exec::TrainingOptions options = small_model();
  options.optimizer = exec::usual_optimizer(exec::OptimizerOptions::Kind::kAdam);
  const TrainedPart whole = train_part(*schedule, options, {}, kSteps);
  // Adam keeps two moments per weight, SGD keeps none.
  const exec::TrainingOptions sgd = small_model();
  EXPECT_GT(whole.state.size(), 2 * train_part(*schedule, sgd, {}, kSteps).state.size());
}

TEST(Checkpoint, AStateOfAnotherTrainingIsRefused) {
  const auto schedule = build_if_legal(find_schedule("1f1b"), {2, 1, 4, 1, {}});
  const exec::Blob state = train_part(*schedule, small_model(), {}, 1).state;
  const Program program = lowered(*schedule);
  exec::TrainingOptions options = small_model();
  options.model.blocks_per_stage = 2;
  exec::Training two_blocks(*schedule, program, options);
  EXPECT_EQ(error_of([&] { two_blocks.stages().restore(state); }),
            "a checkpoint has matrices of other sizes than the model");
  exec::Training same(*schedule, program, small_model());
  for (const std::size_t size : {std::size_t{0}, std::size_t{4}, state.size() - 1}) {
    const exec::Blob cut(state.begin(), state.begin() + static_cast<std::ptrdiff_t>(size));
    EXPECT_EQ(error_of([&] { same.stages().restore(cut); }),
              "there are fewer bytes than announced; they were damaged, or not all processes run "
              "the same program")
        << size;
  }
  exec::Blob longer = state;
  longer.push_back({});
  EXPECT_EQ(error_of([&] { same.stages().restore(longer); }),
            "a checkpoint has more bytes than its training needs");
}

/// The offset after the losses and the weights of the first stage, where its optimizer begins.
std::size_t offset_of_optimizer(const exec::Blob& state) {
  exec::BlobReader reader(state);
  reader.read_all<double>();
  reader.read<std::uint8_t>();
  exec::read_matrices(reader);
  return state.size() - reader.rest().size();
}

// Checksums do not detect these: any program can write a file with a right one.
TEST(Checkpoint, AnOptimizerThatNoTrainingHasIsRefused) {
  const auto schedule = build_if_legal(find_schedule("1f1b"), {2, 1, 4, 1, {}});
  exec::TrainingOptions options = small_model();
  options.optimizer = exec::usual_optimizer(exec::OptimizerOptions::Kind::kAdam);
  const exec::Blob state = train_part(*schedule, options, {}, 1).state;
  const std::size_t begin = offset_of_optimizer(state);
  const Program program = lowered(*schedule);
  exec::Training training(*schedule, program, options);
  EXPECT_NO_THROW(training.stages().restore(state));
  // One step of four micro-batches makes at most four updates; 2^31 - 1 would overflow in the next.
  for (const std::int32_t steps : {-1, 5, std::numeric_limits<std::int32_t>::max()}) {
    exec::Blob changed = state;
    std::memcpy(changed.data() + begin, &steps, sizeof steps);
    EXPECT_EQ(
        error_of([&] { training.stages().restore(changed); }),
        fmt::format("a checkpoint has {} optimizer steps, which its training cannot have made",
                    steps))
        << steps;
  }
  // Without its first moment the next update would index a list without entries.
  const std::span<const std::byte> bytes(state);
  exec::BlobReader moments(bytes.subspan(begin + sizeof(std::int32_t)));
  const std::size_t before = moments.rest().size();
  exec::read_matrices(moments);
  const std::size_t mean_bytes = before - moments.rest().size();
  const auto mean = state.begin() + static_cast<std::ptrdiff_t>(begin + sizeof(std::int32_t));
  exec::Blob halved(state.begin(), mean);
  halved.resize(halved.size() + sizeof(std::size_t));  // a list without entries
  halved.insert(halved.end(), mean + static_cast<std::ptrdiff_t>(mean_bytes), state.end());
  EXPECT_EQ(error_of([&] { training.stages().restore(halved); }),
            "a checkpoint has one of Adam's moments without the other");
}

TEST(Checkpoint, DifferencesAreNamed) {
  const auto schedule = build_if_legal(find_schedule("1f1b"), {2, 1, 4, 1, {}});
  const Program program = lowered(*schedule);
  const auto identify = [&](const Schedule& of, const exec::TrainingOptions& options) {
    return exec::identify_training(of, program, options, exec::this_process_alone());
  };
  const exec::TrainingIdentity known = identify(*schedule, small_model());
  EXPECT_EQ(exec::describe_differences(known, known), "");
  exec::TrainingOptions other = small_model();
  other.seed = 2;
  other.model.precision = exec::Precision::kBfloat16;
  EXPECT_EQ(exec::describe_differences(known, identify(*schedule, other)),
            "`precision` fp32 there and bf16 here, `seed` 1 there and 2 here");
  Schedule swapped = *schedule;
  std::swap(swapped.order[1][2], swapped.order[1][4]);
  EXPECT_NE(
      exec::describe_differences(known, identify(swapped, small_model())).find("order of ops"),
      std::string::npos);
}

TEST(Checkpoint, ADigestTellsEveryBitOfTheWeights) {
  const auto schedule = build_if_legal(find_schedule("1f1b"), {2, 1, 4, 1, {}});
  std::vector<exec::Stage> stages = train_part(*schedule, small_model(), {}, 1).result.stages;
  const std::uint64_t before = exec::digest_weights(stages);
  float& entry = stages[1].weights[2].values[3];
  entry = std::nextafter(entry, 2.0F);
  EXPECT_NE(exec::digest_weights(stages), before);
}

}  // namespace
}  // namespace bubblescope::tests

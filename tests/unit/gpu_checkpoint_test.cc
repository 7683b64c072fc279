// A training on a simulated GPU that is saved and restored between two steps continues bit for bit,
// in the format of the host's checkpoints.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "exec/gpu/host/gpu_job.h"
#include "exec/training/training_identity.h"
#include "sim/ir/error.h"
#include "sim/ir/lower.h"
#include "sim/ir/offload.h"
#include "sim/model/schedule_def.h"
#include "tests/support/as_written.h"
#include "tests/support/error_text.h"
#include "tests/support/fake_gpu.h"
#include "tests/support/gpu_trained.h"
#include "tests/support/verified_training.h"

namespace bubblescope::tests {
namespace {

constexpr std::int32_t kSteps = 5;

/// The result of some steps from a saved state (empty: from the beginning), and the state after
/// them.
struct TrainedPart {
  exec::TrainingResult result;
  exec::Blob state;
};

struct Setting {
  exec::TrainingOptions options;
  exec::DeviceOptions device;
  LowerOptions lowering;
};

exec::Job start(const ValidSchedule& schedule, const Program& program, const Setting& setting) {
  const exec::JobRequest request{
      schedule, program, &setting.options, {}, exec::WaitMode::kSpin, setting.device};
  return exec::start_gpu_job(fake_gpu_calls(), request, {});
}

TrainedPart train_part(const Schedule& schedule, const Setting& setting, const exec::Blob& state,
                       std::int32_t steps) {
  reset_fake_gpu(1);
  const ValidSchedule valid = require_valid(schedule);
  const Program program = std::get<Program>(lower(valid, setting.lowering));
  const exec::Job job = start(valid, program, setting);
  if (!state.empty()) job.resumable->restore(state);
  const exec::Execution execution =
      exec::execute(program, *job.backend, "cuda", {0, steps, job.after_step});
  EXPECT_FALSE(execution.breakdown) << execution.breakdown->message;
  return {job.result(), job.resumable->save()};
}

void expect_continued(const Schedule& schedule, const Setting& setting) {
  const TrainedPart whole = train_part(schedule, setting, {}, kSteps);
  const TrainedPart begun = train_part(schedule, setting, {}, 2);
  const TrainedPart resumed = train_part(schedule, setting, begun.state, kSteps - 2);
  EXPECT_EQ(resumed.result.losses, whole.result.losses);
  EXPECT_EQ(resumed.result.gradients, whole.result.gradients);
  EXPECT_EQ(exec::digest_weights(resumed.result.stages), exec::digest_weights(whole.result.stages));
  EXPECT_EQ(resumed.state, whole.state);
}

Setting with(exec::OptimizerOptions::Kind kind, bool graph) {
  Setting setting{small_model(2), {}, {}};
  setting.options.optimizer = exec::usual_optimizer(kind);
  setting.device.graph = graph;
  return setting;
}

Schedule build(const std::string& name) {
  return build_schedule(find_schedule(name), {{2, 1, 4, 1, {}}, {}, {}});
}

TEST(GpuCheckpoint, EveryScheduleContinuesBitForBit) {
  using Kind = exec::OptimizerOptions::Kind;
  int checked = 0;
  for (const ScheduleDef& def : Registry<ScheduleDef>::instance().all())
    for (const std::int32_t microbatches : {4, 7}) {
      const auto schedule = build_if_legal(def, {2, 1, microbatches, 1, {}});
      if (!schedule || def.splits_output_layer) continue;  // GPUs train chains
      SCOPED_TRACE(def.name + ", " + std::to_string(microbatches) + " micro-batches");
      expect_continued(*schedule, with(checked % 2 == 0 ? Kind::kAdam : Kind::kSgd, false));
      ++checked;
    }
  EXPECT_GT(checked, 30);
}

/// A last micro-batch that no update of its step uses.
Schedule leave_gradients_over() {
  Schedule schedule = build("pipedream");
  for (std::vector<WeightUse>& uses : schedule.weights) uses.back().written.reset();
  return schedule;
}

// A graph is captured in the second step of a process, also of one that was resumed.
TEST(GpuCheckpoint, GraphsLeftoverGradientsAndUpdatesInTheProgramContinue) {
  using Kind = exec::OptimizerOptions::Kind;
  for (const auto kind : {Kind::kAdam, Kind::kSgd})
    for (const bool graph : {false, true}) {
      Setting setting = with(kind, graph);
      for (const Schedule& schedule : {build("zb-h1"), build("pipedream-2bw"), build("chimera"),
                                       leave_gradients_over(), with_offload(build("gpipe"), {})}) {
        SCOPED_TRACE(schedule.name);
        expect_continued(schedule, setting);
      }
      setting.lowering = with_local_optimizer();
      expect_continued(build("zb-h1"), setting);
    }
}

// Masters are float32 in both precisions. The simulated device draws nothing in bfloat16, so that
// what is there was restored.
TEST(GpuCheckpoint, MastersOutliveTheRoundingOfWhatGemmsRead) {
  Setting setting = with(exec::OptimizerOptions::Kind::kAdam, false);
  for (const char* name : {"1f1b", "pipedream"}) {
    const exec::Blob state = train_part(build(name), setting, {}, 1).state;
    Setting halves = setting;
    halves.device.precision = exec::Precision::kBfloat16;
    const ValidSchedule valid = require_valid(build(name));
    const Program program = std::get<Program>(lower(valid, {}));
    const exec::Job job = start(valid, program, halves);
    EXPECT_NE(job.resumable->save(), state);
    job.resumable->restore(state);
    EXPECT_EQ(job.resumable->save(), state);
  }
}

TEST(GpuCheckpoint, AStateOfAnotherTrainingIsRefused) {
  const Setting setting = with(exec::OptimizerOptions::Kind::kAdam, false);
  const exec::Blob state = train_part(build("1f1b"), setting, {}, 1).state;
  const ValidSchedule valid = require_valid(build("1f1b"));
  const Program program = std::get<Program>(lower(valid, {}));
  Setting two_blocks = setting;
  two_blocks.options.model.blocks_per_stage = 2;
  Setting sgd = setting;
  sgd.options.optimizer = exec::usual_optimizer(exec::OptimizerOptions::Kind::kSgd);
  const std::pair<Setting, const char*> others[]{
      {two_blocks, "a checkpoint has matrices of other sizes than the model"},
      {sgd, "a checkpoint has Adam's moments without Adam"}};
  for (const auto& [other, refused] : others) {
    const exec::Job job = start(valid, program, other);
    EXPECT_EQ(error_of([&] { job.resumable->restore(state); }), refused);
  }
  const exec::Job same = start(valid, program, setting);
  for (const std::size_t size : {std::size_t{0}, std::size_t{4}, state.size() - 1}) {
    const exec::Blob cut(state.begin(), state.begin() + static_cast<std::ptrdiff_t>(size));
    EXPECT_EQ(error_of([&] { same.resumable->restore(cut); }),
              "there are fewer bytes than announced; they were damaged, or not all processes run "
              "the same program")
        << size;
  }
  exec::Blob longer = state;
  longer.push_back({});
  EXPECT_EQ(error_of([&] { same.resumable->restore(longer); }),
            "a checkpoint has more bytes than its training needs");
  EXPECT_NO_THROW(same.resumable->restore(state));
}

// The host reads what a device has written, and the other way round; what keeps runs from mixing
// them is the identity.
TEST(GpuCheckpoint, HasTheFormatOfTheHost) {
  const Setting setting = with(exec::OptimizerOptions::Kind::kAdam, false);
  for (const char* name : {"1f1b", "pipedream", "dualpipe"}) {
    const Schedule schedule = build(name);
    const TrainedPart on_gpu = train_part(schedule, setting, {}, 2);
    const Program program = lowered(schedule);
    exec::Training on_host(schedule, program, setting.options);
    on_host.stages().restore(on_gpu.state);
    EXPECT_EQ(on_host.stages().steps(), 2);
    EXPECT_EQ(on_host.stages().save(), on_gpu.state);
    EXPECT_EQ(exec::digest_weights(on_host.stages().result().stages),
              exec::digest_weights(on_gpu.result.stages));
  }
}

TEST(GpuCheckpoint, WhatComputesIsPartOfTheIdentity) {
  reset_fake_gpu(1, 132);
  const ValidSchedule valid = require_valid(build("1f1b"));
  const Program program = std::get<Program>(lower(valid, {}));
  Setting setting = with(exec::OptimizerOptions::Kind::kSgd, false);
  const exec::TrainingIdentity green = start(valid, program, setting).resumable->computed_by;
  setting.device.attention = exec::Attention::kFlash;
  setting.device.share = exec::Share::kStreams;
  const exec::TrainingIdentity streams = start(valid, program, setting).resumable->computed_by;
  const std::string differences = exec::describe_differences(green, streams);
  EXPECT_NE(differences.find("`attention` softmax there and flash here"), std::string::npos);
  EXPECT_NE(differences.find("64 multiprocessors there"), std::string::npos) << differences;
}

}  // namespace
}  // namespace bubblescope::tests

// Training with flash attention: the same gradients in less memory.
#include <gtest/gtest.h>

#include <string>
#include <variant>

#include "exec/gpu/host/device_memory.h"
#include "exec/gpu/host/gpu_job.h"
#include "exec/runtime/execute.h"
#include "exec/training/verification.h"
#include "sim/ir/error.h"
#include "sim/ir/lower.h"
#include "sim/ir/offload.h"
#include "sim/ir/recompute.h"
#include "sim/model/schedule_def.h"
#include "tests/support/as_written.h"
#include "tests/support/error_text.h"
#include "tests/support/fake_gpu.h"
#include "tests/support/verified_training.h"

namespace bubblescope::tests {
namespace {

exec::DeviceOptions flash() {
  exec::DeviceOptions device;
  device.attention = exec::Attention::kFlash;
  return device;
}

Schedule build(const std::string& name, std::int32_t slices = 1) {
  return build_schedule(find_schedule(name), {{2, 1, 4, slices, {}}, {}, {}});
}

struct Trained {
  exec::Verification verification;
  std::vector<Bytes> pools;
  std::vector<Bytes> predicted;
};

Trained train(const Schedule& schedule, const exec::TrainingOptions& options,
              const exec::DeviceOptions& device) {
  FakeGpu& gpu = reset_fake_gpu(1);
  gpu.times.nanos_per_entry = 3;
  gpu.times.nanos_per_byte = 1;
  const Program program = std::get<Program>(lower(schedule, LowerOptions()));
  const ValidSchedule valid = require_valid(schedule);
  const exec::JobRequest request{valid, program, &options, {}, exec::WaitMode::kSpin, device};
  const exec::Job job = exec::start_gpu_job(fake_gpu_calls(), request, {});
  const exec::Execution execution =
      exec::execute(program, *job.backend, "cuda", {1, 2, job.after_step});
  if (execution.breakdown) throw Error(execution.breakdown->fault, execution.breakdown->message);
  Trained trained{exec::verify(job.result(), exec::train_serially(schedule, options, 3)), {}, {}};
  for (const exec::PoolUse& pool : job.pools()) trained.pools.push_back(pool.peak);
  trained.predicted =
      exec::predict_pool_bytes({valid, program, execution.steps[0]}, options, device);
  return trained;
}

TEST(GpuFlash, TrainsAsTheSerialReferenceAndAsLargeAsPredicted) {
  exec::TrainingOptions options = small_model(2);
  options.model.sequence = 7;
  options.model.blocks_per_stage = 2;
  for (const bool graph : {false, true})
    for (const Schedule& schedule :
         {build("1f1b"), build("zb-h1"), build("dualpipe"), build("pipedream"), build("seq1f1b", 3),
          with_offload(build("gpipe"), {}), with_recompute(build("1f1b"), {Recompute::kSelective}),
          with_recompute(build("1f1b"), {Recompute::kFull})}) {
      SCOPED_TRACE(schedule.name);
      exec::DeviceOptions device = flash();
      device.graph = graph;
      const Trained trained = train(schedule, options, device);
      EXPECT_TRUE(trained.verification.matches) << to_string(trained.verification);
      EXPECT_EQ(trained.pools, trained.predicted);
    }
}

// There are 2 sequences of 4 tokens and 2 heads. Instead of the 4 weights in each of 16 rows, one
// float32 is kept, also in bfloat16.
TEST(GpuFlash, KeepsOneValuePerRowOfWeights) {
  const Schedule schedule = build("1f1b");
  const auto kept_of = [&](exec::Precision precision, exec::Attention attention) {
    const exec::DeviceOptions device{exec::Share::kGreen, false, precision, attention};
    return exec::device_training_memory(schedule, small_model(2), device)
        .activation_bytes[0]
        .forward;
  };
  EXPECT_EQ(kept_of(exec::Precision::kFloat32, exec::Attention::kSoftmax) -
                kept_of(exec::Precision::kFloat32, exec::Attention::kFlash),
            16 * (4 * 4 - 4));
  EXPECT_EQ(kept_of(exec::Precision::kBfloat16, exec::Attention::kSoftmax) -
                kept_of(exec::Precision::kBfloat16, exec::Attention::kFlash),
            16 * (4 * 2 - 4));
}

TEST(GpuFlash, HeadsThatAreTooWideAreRefused) {
  exec::TrainingOptions options = small_model(2);
  options.model.width = 258;
  EXPECT_EQ(error_of([&] { train(build("1f1b"), options, flash()); }),
            "`attention` flash: heads are 129 wide, more than 128; use more "
            "`num_attention_heads`, or `attention` softmax");
}

}  // namespace
}  // namespace bubblescope::tests

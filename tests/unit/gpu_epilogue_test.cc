// Fused GELUs: the same training with fewer launches, and separate kernels where the library cannot
// fuse.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <variant>

#include "exec/gpu/host/device_memory.h"
#include "exec/gpu/host/gpu_job.h"
#include "exec/gpu/host/gpu_layers.h"
#include "exec/runtime/execute.h"
#include "sim/ir/error.h"
#include "sim/ir/lower.h"
#include "sim/ir/recompute.h"
#include "sim/model/schedule_def.h"
#include "tests/support/as_written.h"
#include "tests/support/fake_gpu.h"
#include "tests/support/verified_training.h"
#include "tools/commands/measurement_json.h"

namespace bubblescope::tests {
namespace {

Schedule build(const std::string& name) {
  return *build_if_legal(find_schedule(name), {2, 1, 4, 1, {}});
}

exec::DeviceOptions with(exec::Epilogue epilogue) {
  exec::DeviceOptions device;
  device.epilogue = epilogue;
  return device;
}

struct Trained {
  exec::Verification verification;
  std::vector<exec::EpilogueUse> epilogues;
  std::vector<Bytes> pools;
  std::vector<Bytes> predicted_pools;
};

Trained train(const Schedule& schedule, const exec::DeviceOptions& device,
              const exec::TrainingOptions& options = small_model(2)) {
  const ValidSchedule valid = require_valid(schedule);
  const Program program = std::get<Program>(lower(valid, LowerOptions()));
  const exec::Job job = exec::start_gpu_job(
      fake_gpu_calls(), {valid, program, &options, {}, exec::WaitMode::kSpin, device}, {});
  const exec::Execution execution =
      exec::execute(program, *job.backend, "cuda", {1, 2, job.after_step});
  if (execution.breakdown) throw Error(execution.breakdown->fault, execution.breakdown->message);
  Trained trained{exec::verify(job.result(), exec::train_serially(schedule, options, 3)),
                  job.epilogues(),
                  {},
                  exec::predict_pool_bytes({valid, program, execution.steps[1]}, options, device)};
  for (const exec::PoolUse& pool : job.pools()) trained.pools.push_back(pool.peak);
  return trained;
}

// A micro-batch of the small model is 2 sequences of 4 tokens, with width 8 and MLP width 32. The
// GELU follows 8 x 8 by 8 x 32; its gradient follows the GEMM of the same size with the transposed
// 32 x 8.
const exec::EpilogueUse kForward{8, 8, 32, false, true};
const exec::EpilogueUse kBack{8, 8, 32, true, true};

TEST(GpuEpilogues, TrainTheSameWithinProductsAsBehindThem) {
  for (const bool graph : {false, true})
    for (const char* name : {"1f1b", "zb-h1", "gpipe"}) {
      SCOPED_TRACE(name);
      reset_fake_gpu(1);
      exec::DeviceOptions device = with(exec::Epilogue::kFused);
      device.graph = graph;
      const Trained trained = train(build(name), device);
      EXPECT_TRUE(trained.verification.matches) << to_string(trained.verification);
      EXPECT_EQ(trained.epilogues, (std::vector<exec::EpilogueUse>{kForward, kBack}));
      EXPECT_EQ(trained.pools, trained.predicted_pools);
    }
}

TEST(GpuEpilogues, AreRecomputedWithForwards) {
  reset_fake_gpu(1);
  const Schedule schedule = with_recompute(build("1f1b"), {Recompute::kFull});
  const Trained trained = train(schedule, with(exec::Epilogue::kFused));
  EXPECT_TRUE(trained.verification.matches) << to_string(trained.verification);
  EXPECT_EQ(trained.pools, trained.predicted_pools);
}

// The first forward does not write the input of the GELU, the second does. Unwritten memory is NaN
// on this device.
TEST(GpuEpilogues, WriteWhatIsBeforeTheGeluOnlyForABackward) {
  reset_fake_gpu(1);
  const exec::GpuMachine machine(fake_gpu_calls(), 1, exec::Share::kStreams);
  exec::LayerOptions style;
  style.epilogue = exec::Epilogue::kFused;
  exec::GpuLayers layers(machine, 0, style);
  const exec::GpuHandle stream = machine.gpu().create_stream(0, nullptr);
  layers.stream.set(stream.get());
  const exec::GpuMatrix one = layers.stream.make(8, 8);
  std::fill_n(static_cast<float*>(one.data), 64, 1.0F);
  const auto first = [](const exec::GpuMatrix& matrix) {
    return *static_cast<float*>(matrix.data);
  };
  const exec::GeluOutput dropped = layers.gelu.gemm({one}, {one}, false);
  EXPECT_TRUE(std::isnan(first(dropped.before)));
  EXPECT_NEAR(first(dropped.after), 8, 1e-6);  // gelu(8 * 1 * 1) is 8 to that precision
  const exec::GeluOutput kept = layers.gelu.gemm({one}, {one});
  EXPECT_EQ(first(kept.before), 8);
  EXPECT_EQ(first(kept.after), first(dropped.after));
}

// There is one launch less in each direction, for 4 micro-batches on 2 stages of a block in 3
// steps: 2 * 4 * 2 * 3.
TEST(GpuEpilogues, SpareALaunchEachWay) {
  std::int64_t launches[2];
  for (const auto epilogue : {exec::Epilogue::kFused, exec::Epilogue::kSeparate}) {
    FakeGpu& gpu = reset_fake_gpu(1);
    train(build("1f1b"), with(epilogue));
    launches[epilogue == exec::Epilogue::kFused ? 0 : 1] = gpu.launches;
  }
  EXPECT_EQ(launches[1] - launches[0], 48);
}

TEST(GpuEpilogues, AreKernelsBehindTheProductWhereTheLibraryHasNone) {
  reset_fake_gpu(1).knows_epilogues = false;
  const Trained trained = train(build("zb-h1"), with(exec::Epilogue::kFused));
  EXPECT_TRUE(trained.verification.matches) << to_string(trained.verification);
  EXPECT_EQ(to_string(trained.epilogues),
            "GELU after 8 x 8 by 8 x 32, which cuBLASLt cannot fuse; "
            "GELU's gradient after 8 x 8 by 8 x 32, which cuBLASLt cannot fuse");
}

// The width is 3 and the MLP width 12, but cuBLASLt needs rows of the GELU's input whose length is
// a multiple of 8.
TEST(GpuEpilogues, AreNotAskedForWhereRowsAreNotAMultipleOfEight) {
  reset_fake_gpu(1);
  exec::TrainingOptions options = small_model(2);
  options.model.width = 3;
  options.model.heads = 1;
  const Trained trained = train(build("1f1b"), with(exec::Epilogue::kFused), options);
  EXPECT_TRUE(trained.verification.matches) << to_string(trained.verification);
  EXPECT_EQ(trained.epilogues,
            (std::vector<exec::EpilogueUse>{{8, 3, 12, false, false}, {8, 3, 12, true, false}}));
}

// Float32 is for verification to 1e-4.
TEST(GpuEpilogues, AreFusedInBfloat16AloneUnlessTold) {
  reset_fake_gpu(1);
  EXPECT_TRUE(train(build("1f1b"), {}).epilogues.empty());
  exec::DeviceOptions device;
  device.precision = exec::Precision::kBfloat16;
  EXPECT_EQ(train(build("1f1b"), device).epilogues,
            (std::vector<exec::EpilogueUse>{kForward, kBack}));
  device.epilogue = exec::Epilogue::kSeparate;
  EXPECT_TRUE(train(build("1f1b"), device).epilogues.empty());
}

TEST(GpuEpilogues, ArePrintedAsTextAndJson) {
  EXPECT_EQ(to_string(std::vector<exec::EpilogueUse>{}), "");
  EXPECT_EQ(to_string(std::vector<exec::EpilogueUse>{kForward, {8, 3, 12, true, false}}),
            "GELU within 8 x 8 by 8 x 32; "
            "GELU's gradient after 8 x 3 by 3 x 12, which cuBLASLt cannot fuse");
  std::string text;
  traces::JsonWriter json(text);
  tools::write_epilogues_json(json, {kForward, {8, 3, 12, true, false}});
  EXPECT_EQ(text,
            "\"epilogues\":["
            "{\"epilogue\":\"gelu\",\"rows\":8,\"k\":8,\"inner\":8,\"columns\":32,\"fused\":true},"
            "{\"epilogue\":\"gelu_grad\",\"rows\":8,\"k\":3,\"inner\":3,\"columns\":12,\"fused\":"
            "false}]");
}

}  // namespace
}  // namespace bubblescope::tests

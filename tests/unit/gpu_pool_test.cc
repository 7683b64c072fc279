// Activation pools: their use in training is what dry runs of single ops and the analysis predict,
// op for op.
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <variant>

#include "exec/gpu/host/device_memory.h"
#include "exec/gpu/host/gpu_job.h"
#include "exec/gpu/host/pool_dry_run.h"
#include "exec/runtime/execute.h"
#include "sim/ir/error.h"
#include "sim/ir/lower.h"
#include "sim/ir/offload.h"
#include "sim/ir/recompute.h"
#include "sim/model/schedule_def.h"
#include "tests/support/as_written.h"
#include "tests/support/fake_gpu.h"
#include "tests/support/verified_training.h"

namespace bubblescope::tests {
namespace {

struct Pools {
  std::vector<Bytes> measured;
  std::vector<Bytes> predicted;
};

/// Trains two steps on a device with a clock of its own.
Pools train_with_pools(const Schedule& schedule, const exec::TrainingOptions& options) {
  FakeGpu& gpu = reset_fake_gpu(1);
  gpu.times.nanos_per_entry = 3;
  gpu.times.nanos_per_byte = 1;
  const Program program = std::get<Program>(lower(schedule, LowerOptions()));
  const ValidSchedule valid = require_valid(schedule);
  const exec::JobRequest request{valid, program, &options, {}, exec::WaitMode::kSpin, {}};
  const exec::Job job = exec::start_gpu_job(fake_gpu_calls(), request, {});
  const exec::Execution execution =
      exec::execute(program, *job.backend, "cuda", {1, 1, job.after_step});
  if (execution.breakdown) throw Error(execution.breakdown->fault, execution.breakdown->message);
  Pools pools;
  for (const exec::PoolUse& pool : job.pools()) pools.measured.push_back(pool.peak);
  pools.predicted = exec::predict_pool_bytes({valid, program, execution.steps[0]}, options, {});
  return pools;
}

std::optional<Schedule> build(const std::string& name, const Shape& shape) {
  return build_if_legal(find_schedule(name), shape);
}

TEST(GpuPools, AreAsLargeAsPredictedInEverySchedule) {
  int checked = 0;
  exec::TrainingOptions options = small_model(2);
  options.model.blocks_per_stage = 2;
  for (const ScheduleDef& def : Registry<ScheduleDef>::instance().all())
    for (const std::int32_t chunks : {1, 2})
      for (const std::int32_t slices : {1, 2}) {
        const auto schedule = build(def.name, {2, chunks, 4, slices, {}});
        if (!schedule || !schedule->offload_target_of_rank.empty()) continue;
        if (def.splits_output_layer) continue;  // GPUs train chains
        SCOPED_TRACE(def.name);
        const Pools pools = train_with_pools(*schedule, options);
        EXPECT_EQ(pools.measured, pools.predicted);
        ++checked;
      }
  EXPECT_GE(checked, 25);
}

TEST(GpuPools, AreAsLargeAsPredictedWithRecomputation) {
  for (const Recompute recompute : {Recompute::kSelective, Recompute::kFull}) {
    const Schedule schedule = with_recompute(*build("1f1b", {4, 1, 8, 1, {}}), {recompute});
    const Pools pools = train_with_pools(schedule, small_model(2));
    EXPECT_EQ(pools.measured, pools.predicted);
  }
}

TEST(GpuPools, AreAsLargeAsPredictedWhereActivationsLeave) {
  for (const char* name : {"bpipe", "1f1b", "zb-h1"}) {
    SCOPED_TRACE(name);
    Schedule schedule = *build(name, {4, 1, 8, 1, {}});
    if (schedule.offload_target_of_rank.empty()) schedule = with_offload(schedule, {});
    const Pools pools = train_with_pools(schedule, small_model(2));
    EXPECT_EQ(pools.measured, pools.predicted);
  }
}

// One block of width 8, inner 32, 2 heads, 2 sequences of 4 tokens, in the middle of a pipeline:
// 8 rows. A forward keeps 8 columns each of norm, mixed, middle and second norm, 24 of queries,
// keys and values, 32 each around the gelu, 2 x 4 of attention's weights: 128 columns, 8 x 128 x 4
// bytes. Its input lies in the mail. A gradient of weights only gives back.
TEST(GpuPools, DryRunsSeeWhatOpsSave) {
  const Schedule schedule = *build("zb-h1", {3, 1, 6, 1, {}});
  const exec::SlicePool pool = exec::dry_run_stage(schedule, small_model(2), {}, 1).at(0);
  EXPECT_EQ(pool.forward.added, 8 * 128 * 4);
  EXPECT_EQ(pool.forward.during, pool.forward.added);
  EXPECT_EQ(pool.kept, pool.forward.added);
  EXPECT_EQ(pool.weight_grad.during, 0);
  EXPECT_EQ(pool.forward.added + pool.input_grad.added + pool.weight_grad.added, 0);
  EXPECT_GT(pool.input_grad.during, 0);  // attention's gradient exists beside the saved activations
}

}  // namespace
}  // namespace bubblescope::tests

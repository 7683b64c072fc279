// Starts a job as the backend cuda does.
#include "tests/support/gpu_trained.h"

#include <gtest/gtest.h>

#include <variant>

#include "exec/gpu/host/gpu_job.h"
#include "tests/support/as_written.h"
#include "tests/support/fake_gpu.h"

namespace bubblescope::tests {

Trained train_on_gpu(const Schedule& schedule, const exec::TrainingOptions& options,
                     const exec::DeviceOptions& device, const LowerOptions& lowering) {
  const ValidSchedule valid = require_valid(schedule);
  const Program program = std::get<Program>(lower(valid, lowering));
  const exec::JobRequest request{valid, program, &options, {}, exec::WaitMode::kSpin, device};
  const exec::Job job = exec::start_gpu_job(fake_gpu_calls(), request, {});
  Trained trained{exec::execute(program, *job.backend, "cuda", {1, 2, job.after_step}), {}, {}};
  if (trained.execution.breakdown) return trained;
  trained.verification = exec::verify(job.result(), exec::train_serially(schedule, options, 3));
  trained.peaks = job.peak_bytes();
  return trained;
}

Timeline expect_trained(const Schedule& schedule, const exec::TrainingOptions& options,
                        const exec::DeviceOptions& device, const LowerOptions& lowering) {
  const Trained trained = train_on_gpu(schedule, options, device, lowering);
  if (!trained.verification) {
    ADD_FAILURE() << trained.execution.breakdown->message;
    return {};
  }
  EXPECT_TRUE(trained.verification->matches) << to_string(*trained.verification);
  return trained.execution.steps.back();
}

LowerOptions with_local_optimizer() {
  LowerOptions lowering;
  lowering.update.optimizer = OptimizerMode::kLocal;
  return lowering;
}

}  // namespace bubblescope::tests

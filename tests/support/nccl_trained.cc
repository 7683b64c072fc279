// Starts jobs as the backend nccl does.
#include "tests/support/nccl_trained.h"

#include <utility>
#include <variant>

#include "exec/nccl/nccl_place.h"
#include "exec/training/verification.h"
#include "tests/support/as_written.h"
#include "tests/support/fake_nccl.h"
#include "tests/support/verified_training.h"

namespace bubblescope::tests {

NcclTrained train_program_over_nccl(exec::SocketTransport& link, const Schedule& schedule,
                                    const Program& program, exec::BackendRequest request,
                                    const BubblescopeGpu& gpu) {
  const exec::TrainingOptions options = small_model(2);
  const ValidSchedule valid = require_valid(schedule);
  const exec::JobRequest job{valid, program, &options, {}, exec::WaitMode::kSpin, {}};
  const exec::Job started =
      exec::start_nccl_job({gpu, fake_nccl_calls(), link, 0}, job, std::move(request));
  NcclTrained trained{exec::execute(program, *started.backend, "nccl", {1, 1, started.after_step}),
                      "", ""};
  trained.device = started.device;
  if (trained.execution.breakdown) return trained;
  Schedule whole = schedule;
  whole.shape.microbatches *= started.replicas;
  const exec::Verification verification =
      exec::verify(started.result(), exec::train_serially(whole, options, 2));
  trained.verification = verification.matches ? "right" : to_string(verification);
  return trained;
}

NcclTrained train_over_nccl(exec::SocketTransport& link, const Schedule& schedule,
                            const LowerOptions& lowering, exec::BackendRequest request,
                            const BubblescopeGpu& gpu) {
  return train_program_over_nccl(link, schedule, std::get<Program>(lower(schedule, lowering)),
                                 std::move(request), gpu);
}

std::string breakdown_of(const NcclTrained& trained) {
  return trained.execution.breakdown ? trained.execution.breakdown->message : "none";
}

}  // namespace bubblescope::tests

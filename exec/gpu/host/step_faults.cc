// Enqueues kernels that wait.
#include "exec/gpu/host/step_faults.h"

#include "sim/ir/error.h"

namespace bubblescope::exec {

namespace {

/// On a stream, faults can only be injected before or after an op.
const Injections& expect_possible(const Injections& injections) {
  using Kind = Injection::Kind;
  for (const Injection& injection : injections)
    if (injection.kind != Kind::kDelay && injection.kind != Kind::kDie &&
        injection.kind != Kind::kHang)
      throw Error("`inject` " + to_string(injection) +
                  ": on GPUs only delay, die and hang can be injected; use `backend` cpu");
  return injections;
}

}  // namespace

StepFaults::StepFaults(const GpuMachine& machine, const Program& program,
                       const BackendRequest& request)
    : gpu_(machine.gpu()),
      bound_(request.limits.timeout + kDrainTimeout),
      injections_(expect_possible(request.injections), program),
      stop_(machine.gpu().calls()) {}

bool StepFaults::blocks(InstructionId id) const {
  const Injection* const injection = injections_.find(id);
  return is_armed_ && injection != nullptr &&
         (injection->kind == Injection::Kind::kDie || injection->kind == Injection::Kind::kHang);
}

bool StepFaults::kills(InstructionId id) const {
  return blocks(id) && injections_.find(id)->kind == Injection::Kind::kDie;
}

/// A rank that dies or hangs is blocked at its op until the step is aborted.
void StepFaults::enqueue_before(InstructionId id, void* stream) const {
  if (blocks(id)) gpu_.spin({bound_, 0, stop_.on_device(), 1}, stream);
}

void StepFaults::enqueue_after(InstructionId id, void* stream) const {
  const Injection* const injection = injections_.find(id);
  if (injection != nullptr && injection->delay > 0)
    gpu_.spin({injection->delay, 0, stop_.on_device(), 0}, stream);
}

}  // namespace bubblescope::exec

// The backend behind a job on GPUs, with its work.
#include "exec/gpu/gpu_job.h"

#include <memory>
#include <optional>
#include <utility>

#include "exec/gpu/gpu_step.h"
#include "exec/gpu/timed_gpu_work.h"
#include "sim/ir/error.h"

namespace bubblescope {

namespace {

class GpuWorker : public RankWorker {
 public:
  GpuWorker(std::int32_t rank, GpuStep& step) : rank_(rank), step_(step) {}

  void enqueue(InstructionId id) override { step_.push(id); }
  RankResult finish() override { return step_.result(rank_); }

 private:
  std::int32_t rank_;
  GpuStep& step_;
};

class GpuBackend : public Backend {
 public:
  GpuBackend(const BubblescopeGpu& calls, const JobRequest& job, BackendRequest request)
      : program_(job.program),
        request_(std::move(request)),
        machine_(calls, job.program.ranks, job.device.share),
        step_(machine_, program_, request_,
              play_on_gpu(machine_, program_, job.durations, job.pass), job.device.graph) {}

  std::unique_ptr<RankWorker> open(std::int32_t rank, const Program& program) override {
    if (&program != &program_)
      throw Error(Fault::kProblem, "a job on GPUs runs the program that it was started for");
    return std::make_unique<GpuWorker>(rank, step_);
  }

  std::string describe() const { return machine_.describe(); }

 private:
  const Program& program_;
  BackendRequest request_;
  GpuMachine machine_;
  GpuStep step_;
};

}  // namespace

Job start_gpu_job(const BubblescopeGpu& calls, const JobRequest& job, BackendRequest request) {
  if (job.training != nullptr)
    throw Error("transformers train on --backend cpu only; on GPUs take --work sleep or spin");
  auto backend = std::make_unique<GpuBackend>(calls, job, std::move(request));
  Job started;
  started.device = backend->describe();
  started.backend = std::move(backend);
  return started;
}

}  // namespace bubblescope

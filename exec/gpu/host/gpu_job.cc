// Creates the backend of a job on GPUs, with its work.
#include "exec/gpu/host/gpu_job.h"

#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "exec/gpu/host/gpu_step.h"
#include "exec/gpu/host/gpu_training.h"
#include "exec/gpu/host/timed_gpu_work.h"
#include "sim/ir/error.h"

namespace bubblescope::exec {

namespace {

void refuse_device_options(const DeviceOptions& device, const BackendRequest& request) {
  if (!device.graph) return;
  if (!request.injections.empty())
    throw Error("`inject`: a graph cannot be stopped at an op; omit `graph`");
  if (device.activity)
    throw Error("`activity`: CUPTI does not assign a graph's kernels to ops; omit `graph`");
}

class GpuBackend : public Backend {
 public:
  GpuBackend(const BubblescopeGpu& calls, const JobRequest& job, BackendRequest request)
      : program_(job.program),
        request_(std::move(request)),
        machine_(calls, job.program.ranks, job.device.share) {
    if (job.training != nullptr) training_.emplace(machine_, job);
    step_.emplace(machine_, program_, request_, work_of(job));
  }

  std::vector<RankResult> run_step() override {
    step_->run();
    std::vector<RankResult> results;
    for (std::int32_t rank = 0; rank < program_.ranks; ++rank)
      results.push_back(step_->result(rank));
    return results;
  }

  const GpuMachine& machine() const { return machine_; }
  std::string describe() const { return machine_.describe() + step_->describe_limits(); }
  bool failed_as_graph() const { return step_->failed_as_graph(); }
  GpuTraining* training() { return training_ ? &*training_ : nullptr; }
  void finish_step() {
    training_->finish_step([this](InstructionId id) { return step_->span_of(id); });
  }

 private:
  GpuStepWork work_of(const JobRequest& job) {
    if (!training_)
      return {.enqueue = play_on_gpu(machine_, program_, job.durations, job.wait_mode),
              .uses_graph = job.device.graph,
              .has_tags = job.device.activity};
    return {.enqueue = std::bind_front(&GpuTraining::enqueue, &*training_),
            .begin = std::bind_front(&GpuTraining::begin_step, &*training_),
            .uses_graph = job.device.graph,
            .loads_kernels = true,
            .has_tags = job.device.activity};
  }

  const Program& program_;
  BackendRequest request_;
  GpuMachine machine_;
  std::optional<GpuTraining> training_;
  std::optional<GpuStep> step_;
};

}  // namespace

Job start_gpu_job(const BubblescopeGpu& calls, const JobRequest& job, BackendRequest request) {
  refuse_device_options(job.device, request);
  if (job.device.activity) start_activity(calls);  // before anything is made on a device
  auto backend = std::make_unique<GpuBackend>(calls, job, std::move(request));
  Job started;
  started.device = backend->describe();
  started.buses = backend->machine().buses();
  started.ranks_per_device = backend->machine().ranks_per_device();
  started.failed_as_graph = [on = backend.get()] { return on->failed_as_graph(); };
  if (job.device.activity)
    started.activity = [&calls](std::int64_t step, const Timeline& timeline) {
      return activity_of_step(read_activity(calls), step, timeline);
    };
  if (GpuTraining* const training = backend->training()) {
    started.after_step = [on = backend.get()] { on->finish_step(); };
    started.result = [training] { return training->result(); };
    started.resumable = training->resumable();
    started.pools = [training] { return training->pools(); };
    started.epilogues = [training] { return training->epilogues(); };
    started.peak_bytes = [training] { return training->peak_bytes(); };
  }
  started.backend = std::move(backend);
  return started;
}

}  // namespace bubblescope::exec

// Starts a job with one process per rank.
#include <memory>
#include <utility>

#include "exec/nccl/nccl_backend.h"
#include "exec/nccl/nccl_place.h"
#include "sim/ir/error.h"

namespace bubblescope::exec {

namespace {

void refuse_device_options(const DeviceOptions& device) {
  if (device.graph) throw Error("`graph`: steps over NCCL cannot be launched as graphs; omit it");
  if (device.activity)
    throw Error("`activity`: records of several processes cannot be gathered; use `backend` cuda");
}

}  // namespace

Job start_nccl_job(const NcclPlace& place, const JobRequest& job, BackendRequest request) {
  std::unique_ptr<NcclBackend> backend;
  try {
    refuse_device_options(job.device);
    backend = std::make_unique<NcclBackend>(place, job, std::move(request));
  } catch (const Error& error) {
    StepProtocol(place.link, {}).notify_failure(error.what());
    throw;
  }
  Job started;
  started.device = backend->describe();
  started.buses = backend->buses();
  started.replicas = backend->replicas();
  if (NcclTraining* const training = backend->training()) {
    started.after_step = [training] { training->finish_step(); };
    started.result = [training] { return training->result(); };
    started.resumable = training->resumable();
    started.epilogues = [training] { return training->epilogues(); };
    started.peak_bytes = [training] { return training->peak_bytes(); };
  }
  started.backend = std::move(backend);
  return started;
}

}  // namespace bubblescope::exec

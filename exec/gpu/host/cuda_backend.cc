// The backend `cuda`: all ranks in one process, on one shared GPU or on one each. Everything that
// needs CUDA is in a module that is loaded here, so that the program starts without a driver.
#include <utility>

#include "exec/gpu/host/device_backend.h"
#include "exec/gpu/host/gpu.h"
#include "exec/gpu/host/gpu_bench.h"
#include "exec/gpu/host/gpu_job.h"
#include "exec/gpu/host/time_copies.h"

namespace bubblescope::exec {

namespace {

Job start_cuda(const JobRequest& job, BackendRequest request) {
  return start_gpu_job(open_gpu(), job, std::move(request));
}

std::vector<MessageTime> time_messages(std::int32_t ranks, const DeviceOptions& device) {
  return time_copies(open_gpu(), ranks, device.share);
}

std::vector<MessageTime> time_host(std::int32_t ranks, const DeviceOptions& device) {
  return time_host_copies(open_gpu(), ranks, device.share);
}

const BackendRegistrar cuda_registrar{[] {
  return BackendDef{.name = "cuda",
                    .aliases = {"gpu"},
                    .summary = "all ranks in one process, streams of one or several GPUs"};
}};

const DeviceBackendRegistrar device_registrar{[] {
  return DeviceBackendDef{.name = "cuda",
                          .start = start_cuda,
                          .time_messages = time_messages,
                          .time_host_copies = time_host,
                          .open_bench = [] { return open_gpu_bench(open_gpu()); }};
}};

}  // namespace

}  // namespace bubblescope::exec

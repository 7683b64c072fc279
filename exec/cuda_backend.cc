// The backend `cuda`: all ranks in one process, sharing one GPU or with one each. All that needs
// CUDA itself is in a module, which is opened here, so that the program starts without a driver.
#include <utility>

#include "exec/gpu/gpu.h"
#include "exec/gpu/gpu_job.h"

namespace bubblescope {

namespace {

Job start(const JobRequest& job, BackendRequest request) {
  return start_gpu_job(open_gpu(), job, std::move(request));
}

const BackendRegistrar registrar{
    {"cuda", {"gpu"}, "all ranks in one process, streams of one or several GPUs", {}, {}, start}};

}  // namespace

}  // namespace bubblescope

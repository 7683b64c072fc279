// A job on the GPUs of this process.
#pragma once

#include "exec/gpu/calls.h"
#include "exec/gpu/host/job.h"

namespace bubblescope {

/// `calls` is not copied. Throws Error where there are too few multiprocessors for the ranks, too
/// little memory for the training, or the device fails.
Job start_gpu_job(const BubblescopeGpu& calls, const JobRequest& job, BackendRequest request);

}  // namespace bubblescope

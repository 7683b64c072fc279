// Runs a job on the GPUs of this process.
#pragma once

#include "exec/gpu/calls.h"
#include "exec/gpu/host/job.h"

namespace bubblescope::exec {

/// `calls` is not copied. Throws Error if there are too few multiprocessors for the ranks, if there
/// is too little memory for the training, or if a device fails.
Job start_gpu_job(const BubblescopeGpu& calls, const JobRequest& job, BackendRequest request);

}  // namespace bubblescope::exec

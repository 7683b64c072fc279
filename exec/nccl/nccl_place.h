// What a process of the backend nccl has: a device, and a link to the others.
#pragma once

#include "exec/gpu/calls.h"
#include "exec/job.h"
#include "exec/nccl/calls.h"
#include "exec/nccl/process_link.h"

namespace bubblescope {

/// Not an owner.
struct NcclPlace {
  const BubblescopeGpu& gpu;
  const BubblescopeNccl& nccl;
  ProcessLink& link;
  std::int32_t device = 0;
};

/// A job of which this process runs the rank that its seat says. All processes start the same job.
/// Nothing is copied but the request. Throws Error where the processes are not one per rank, run
/// different programs, or one of them cannot.
Job start_nccl_job(const NcclPlace& place, const JobRequest& job, BackendRequest request);

}  // namespace bubblescope

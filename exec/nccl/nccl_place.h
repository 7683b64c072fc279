// What a process of the backend nccl has: a device, and a link to the others.
#pragma once

#include "exec/gpu/calls.h"
#include "exec/gpu/host/job.h"
#include "exec/nccl/calls.h"
#include "exec/nccl/socket_transport.h"

namespace bubblescope::exec {

/// Not an owner.
struct NcclPlace {
  const BubblescopeGpu& gpu;
  const BubblescopeNccl& nccl;
  SocketTransport& link;
  std::int32_t device = 0;
};

/// The part that a process has in a job: processes are the ranks of one or several copies of the
/// pipeline, copy by copy.
struct JobPart {
  std::int32_t ranks = 1;  ///< of one copy
  std::int32_t copies = 1;
  std::int32_t rank = 0;
  std::int32_t copy = 0;

  /// The process that has a rank of a copy.
  std::int32_t process_of(std::int32_t other_rank, std::int32_t other_copy) const {
    return other_copy * ranks + other_rank;
  }
};

/// Throws Error where the processes do not make whole copies of so many ranks.
JobPart find_part(const RankInfo& rank_info, std::int32_t ranks);

/// A job of which this process runs the rank that its seat says, and several copies where there are
/// as many processes: they train together, each on micro-batches of its own. All processes start
/// the same job. Nothing is copied but the request. Throws Error where there are too few processes,
/// they run different programs, or one of them cannot.
Job start_nccl_job(const NcclPlace& place, const JobRequest& job, BackendRequest request);

}  // namespace bubblescope::exec

// The resources of a process of the backend nccl, and its part in a job.
#pragma once

#include <string>

#include "exec/gpu/calls.h"
#include "exec/gpu/host/job.h"
#include "exec/nccl/calls.h"
#include "exec/nccl/socket_transport.h"

namespace bubblescope::exec {

/// References to the modules, the transport and the device. Owns nothing.
struct NcclPlace {
  const BubblescopeGpu& gpu;
  const BubblescopeNccl& nccl;
  SocketTransport& link;
  std::int32_t device = 0;
  std::string launch_order = {};  ///< how NCCL's launches differ from the plan; empty: they do not
};

/// The part of a process in a job. Processes are numbered replica by replica: with 4 ranks, process
/// 6 is rank 2 of the second replica of the pipeline.
struct JobPart {
  std::int32_t ranks = 1;  ///< ranks per replica
  std::int32_t replicas = 1;
  std::int32_t rank = 0;
  std::int32_t replica = 0;

  /// Returns the process that runs a rank of a replica.
  std::int32_t process_of(std::int32_t other_rank, std::int32_t other_replica) const {
    return other_replica * ranks + other_rank;
  }
};

/// Throws Error if the number of processes is not a multiple of `ranks`.
JobPart find_part(const RankInfo& rank_info, std::int32_t ranks);

/// Starts a job in which this process runs the rank given by its RankInfo. If there are several
/// times as many processes as ranks, several replicas of the pipeline train together, each on
/// micro-batches of its own. All processes must start the same job. Only the request is copied.
/// Throws Error if the number of processes is wrong, they run different programs, or one of them
/// cannot take part.
Job start_nccl_job(const NcclPlace& place, const JobRequest& job, BackendRequest request);

}  // namespace bubblescope::exec

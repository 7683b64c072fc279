// Reads the environment variables by which a launcher sets a process's rank and the address of rank
// 0.
//
//   | launcher | rank, world size, local rank                                           |
//   |----------|------------------------------------------------------------------------|
//   | torchrun | RANK, WORLD_SIZE, LOCAL_RANK                                           |
//   | mpirun   | OMPI_COMM_WORLD_RANK, OMPI_COMM_WORLD_SIZE, OMPI_COMM_WORLD_LOCAL_RANK |
//   | PMI      | PMI_RANK, PMI_SIZE, MPI_LOCALRANKID                                    |
//   | srun     | SLURM_PROCID, SLURM_STEP_NUM_TASKS, SLURM_LOCALID                      |
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "exec/nccl/secret.h"
#include "exec/nccl/tcp_socket.h"
#include "exec/runtime/transport.h"

namespace bubblescope::exec {

struct Launch {
  std::string launcher;  ///< "torchrun"; empty if this process was started alone
  RankInfo rank_info;
  std::optional<std::int32_t> local_rank;  ///< rank within its host
  std::optional<Address> rendezvous;  ///< where rank 0 listens; empty: rank 0 sends it over MPI
  std::string interface_name = {};    ///< where rank 0 listens instead; empty: as above
  SecretSource secret = {};           ///< the secret's source, if variables name one
  std::string runtime_folder = {};    ///< XDG_RUNTIME_DIR; may be empty

  /// Whether other hosts cannot reach the rendezvous.
  bool is_local() const {
    return rendezvous && is_loopback(rendezvous->host) && interface_name.empty();
  }
};

/// The value of a variable; null if it is not set.
using Environment = std::function<const char*(const char* name)>;

/// Reads the variables of the first launcher in the table that has set its own. The rendezvous is,
/// in this order: BUBBLESCOPE_RENDEZVOUS (host:port); MASTER_ADDR and MASTER_PORT (the next port if
/// torchrun's own store listens at that one); the port after that of NCCL_COMM_ID; under srun, the
/// first host of SLURM_STEP_NODELIST and a port derived from the job's number. If the launcher
/// reports that all processes are on one host and BUBBLESCOPE_RENDEZVOUS is not set, it is at the
/// loopback interface. Throws Error for invalid values.
Launch read_launch(const Environment& environment);

/// With NCCL_LAUNCH_ORDER_IMPLICIT=1, NCCL adds waits that the schedule does not have: "NCCL
/// launches the transfers of all links in the order in which they are enqueued
/// (NCCL_LAUNCH_ORDER_IMPLICIT=1), so links wait for each other". Empty: each link is alone.
std::string describe_launch_order(const Environment& environment);

/// The first host of a Slurm host list: "gpu07" of "gpu[07-09,12],login1".
std::string first_host(const std::string& list);

}  // namespace bubblescope::exec

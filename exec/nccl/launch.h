// What a launcher tells a process through environment variables: which rank it is, and where the
// others are.
//
//   | launcher | rank, count, rank on its host                                         |
//   |----------|------------------------------------------------------------------------|
//   | torchrun | RANK, WORLD_SIZE, LOCAL_RANK                                           |
//   | srun     | SLURM_PROCID, SLURM_STEP_NUM_TASKS, SLURM_LOCALID                      |
//   | mpirun   | OMPI_COMM_WORLD_RANK, OMPI_COMM_WORLD_SIZE, OMPI_COMM_WORLD_LOCAL_RANK |
//   | PMI      | PMI_RANK, PMI_SIZE, MPI_LOCALRANKID                                    |
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
  std::string launcher;  ///< "torchrun"; empty: none, this process is alone
  RankInfo rank_info;
  std::optional<std::int32_t> local_rank;  ///< on its host
  std::optional<Address> rendezvous;       ///< where rank 0 listens; empty: MPI has to tell
  std::string interface_name = {};         ///< where rank 0 listens instead; empty: at the meeting
  SecretSource secret = {};                ///< where the secret is, if the launcher says so
  std::string runtime_folder = {};         ///< the user's own on this host; may be empty

  /// Whether no other host can reach the meeting.
  bool is_local() const {
    return rendezvous && is_loopback(rendezvous->host) && interface_name.empty();
  }
};

/// The value of a variable; null where it is not set.
using Environment = std::function<const char*(const char* name)>;

/// The first launcher of the table whose variables are there. The meeting place is, in this order,
/// BUBBLESCOPE_RENDEZVOUS (host:port); MASTER_ADDR and MASTER_PORT (the port behind it, where
/// torchrun's own store has that one); the port behind that of NCCL_COMM_ID; under srun the first
/// host of SLURM_STEP_NODELIST and a port made of the job's number. Where the launcher says that
/// all are on one host and no BUBBLESCOPE_RENDEZVOUS is set, they meet at its loopback interface.
/// Throws Error for values that cannot be.
Launch read_launch(const Environment& environment);

/// The first host of a list as Slurm writes it: "gpu07" of "gpu[07-09,12],login1".
std::string first_host(const std::string& list);

}  // namespace bubblescope::exec

// Rank and world size, as set by torchrun, mpirun and srun.
#pragma once

#include <array>

namespace bubblescope::exec {

/// The environment variables of one launcher.
struct Launcher {
  const char* name;
  const char* rank;
  const char* count;
  const char* local_rank;          ///< rank within its host
  bool may_set_rank_only = false;  ///< a rank may be set without a count
};

inline constexpr Launcher kTorchrun{"torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK"};
/// Open MPI; MPICH and Intel MPI.
inline constexpr std::array<Launcher, 2> kMpiruns{{
    {"mpirun", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK"},
    {"mpirun", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID"},
}};
/// Slurm also sets a rank in batch scripts, but a number of tasks only in steps of srun.
inline constexpr Launcher kSrun{"srun", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID",
                                true};

}  // namespace bubblescope::exec

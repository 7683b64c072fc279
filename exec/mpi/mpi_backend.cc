// The backend `mpi`: one process per rank, which sends messages over MPI.
#include <memory>
#include <utility>

#include "exec/mpi/mpi_transport.h"
#include "exec/mpi/mpi_watchdog.h"
#include "exec/runtime/distributed_backend.h"
#include "sim/ir/error.h"

namespace bubblescope::exec {

namespace {

void expect_process_per_rank(const Program& program, const Transport& transport) {
  if (program.ranks == transport.self().count) return;
  const std::string ranks = std::to_string(program.ranks);
  throw Error("the backend mpi runs one process per rank: start " + ranks + " of them, as in " +
              "'mpirun -np " + ranks + " bubblescope ...' (there are " +
              std::to_string(transport.self().count) + ")");
}

std::unique_ptr<Backend> make_mpi_backend(BackendRequest request, const Program& program) {
  MpiTransport& transport = open_mpi();
  expect_process_per_rank(program, transport);
  return std::make_unique<DistributedBackend>(std::move(request), program, transport);
}

MpiTransport& start_mpi(const Limits& limits) {
  const MpiWatchdog watch(limits, "start");
  return open_mpi();
}

/// Skips the end of MPI if a process is gone, since MPI would wait for it; the launcher cleans up.
void end_mpi(MpiTransport& transport, const Limits& limits) {
  if (transport.first_gone()) return;
  const MpiWatchdog watch(limits, "end");
  transport.close();
}

std::unique_ptr<Processes> join(const Limits& limits) {
  MpiTransport& transport = start_mpi(limits);
  return std::make_unique<Processes>(transport, limits,
                                     [&transport, limits] { end_mpi(transport, limits); });
}

const BackendRegistrar mpi_registrar{[] {
  return BackendDef{.name = "mpi",
                    .aliases = {"openmpi"},
                    .summary = "one process per rank, started by mpirun; messages over MPI",
                    .make = make_mpi_backend,
                    .join = join};
}};

}  // namespace

}  // namespace bubblescope::exec

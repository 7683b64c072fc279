// The backend `mpi`: one process per rank, messages over MPI.
#include <algorithm>
#include <cstdio>
#include <memory>
#include <utility>

#include "exec/mpi_crew.h"
#include "exec/mpi_watch.h"
#include "exec/waiting.h"
#include "sim/ir/error.h"

namespace bubblescope {

namespace {

void expect_process_per_rank(const Program& program, const MpiPort& port) {
  if (program.ranks == port.count()) return;
  const std::string ranks = std::to_string(program.ranks);
  throw Error("the backend mpi runs one process per rank: start " + ranks + " of them, as in " +
              "'mpirun -np " + ranks + " bubblescope ...' (there are " +
              std::to_string(port.count()) + ")");
}

std::unique_ptr<Backend> make(BackendRequest request, const Program& program) {
  MpiPort& port = open_mpi();
  expect_process_per_rank(program, port);
  return std::make_unique<MpiCrew>(std::move(request), program, port);
}

/// Signs of life let one wait on.
bool is_over(Waiting& waiting, MpiPort& port) {
  if (!port.look(Channel::kControl).empty()) waiting.renew();
  return waiting.is_over();
}

std::vector<Blob> share(MpiPort& port, Blob own, const Limits& limits) {
  Waiting waiting(limits);
  std::vector<Blob> all;
  for (std::optional<Blob>& bytes :
       port.share(std::move(own), [&] { return is_over(waiting, port); })) {
    if (!bytes)
      throw Error(Fault::kMachine, "rank " + std::to_string(all.size()) +
                                       " does not answer: its process has died or hangs");
    all.push_back(std::move(*bytes));
  }
  return all;
}

std::int32_t find_speaker(const MpiPort& port) {
  std::int32_t speaker = 0;
  while (port.is_gone(speaker)) ++speaker;
  return speaker;
}

/// The speaker may still have files to write, or a serial reference to train.
void await_speaker(MpiPort& port, const Limits& limits) {
  Waiting waiting(limits);
  for (const Patience patience; port.look(Channel::kLeave).empty() && !is_over(waiting, port);)
    patience.wait();
}

/// Where a process is gone, MPI cannot be ended properly: the launcher cleans up.
void leave(MpiPort& port, const Limits& limits) {
  const std::int32_t speaker = find_speaker(port);
  if (port.rank() == speaker)
    port.send_all(Channel::kLeave, {});
  else
    await_speaker(port, limits);
  std::fflush(nullptr);
  if (!port.all_answer()) return;
  const MpiWatch watch(limits, "end");
  port.close();
}

MpiPort& start_mpi(const Limits& limits) {
  const MpiWatch watch(limits, "start");
  return open_mpi();
}

Processes::Link join(const Limits& limits) {
  MpiPort& port = start_mpi(limits);
  return {port.rank(),
          port.count(),
          [&port, limits](Blob own) { return share(port, std::move(own), limits); },
          [&port] { return find_speaker(port); },
          [&port, limits] { leave(port, limits); },
          [&port] { port.send_all(Channel::kControl, sign_of_life()); }};
}

const BackendRegistrar registrar{
    {"mpi", {"openmpi"}, "one process per rank, started by mpirun; messages over MPI", make, join}};

}  // namespace

}  // namespace bubblescope

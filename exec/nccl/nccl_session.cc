// The backend `nccl`: one process per GPU, on one host or several. The code that needs CUDA and
// NCCL is in modules that are loaded here, so that the program starts without them.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <utility>

#include "exec/gpu/host/device_backend.h"
#include "exec/gpu/host/gpu.h"
#include "exec/mpi/mpi_transport.h"
#include "exec/nccl/choose_device.h"
#include "exec/nccl/launch.h"
#include "exec/nccl/nccl.h"
#include "exec/nccl/nccl_place.h"
#include "exec/nccl/rendezvous.h"
#include "exec/runtime/processes.h"
#include "exec/runtime/step_protocol.h"
#include "sim/ir/error.h"

namespace bubblescope::exec {

namespace {

std::string read_host_name() {
  std::array<char, 256> name{};
  gethostname(name.data(), name.size() - 1);
  return name.data();
}

void warn(const std::string& what) {
  std::fputs(("bubblescope: warning: " + what + "\n").c_str(), stderr);
}

/// The host name of rank 0, or the loopback interface if all processes are on one host and no
/// interface is named.
std::string find_host_of_rank_0(StepProtocol& protocol, const std::string& interface_name) {
  BlobWriter writer;
  writer.write_text(read_host_name());
  const std::vector<Blob> names = protocol.gather(writer.take());
  const bool is_one = std::all_of(names.begin(), names.end(),
                                  [&names](const Blob& name) { return name == names[0]; });
  return is_one && interface_name.empty() ? "127.0.0.1" : BlobReader(names[0]).read_text();
}

/// The rendezvous under mpirun if no address is set: rank 0 sends its address over MPI.
SocketTransport rendezvous_over_mpi(const Launch& launch, const Limits& limits) {
  MpiTransport& mpi = open_mpi();
  StepProtocol protocol(mpi, limits);
  const bool is_root = launch.rank_info.rank == 0;
  const std::string host = find_host_of_rank_0(protocol, launch.interface_name);
  std::optional<TcpSocket> listener;
  BlobWriter writer;
  if (is_root) listener = listen_at({host, 0}, launch.interface_name);
  writer.write(is_root ? port_of(*listener) : std::uint16_t{0});
  writer.write_text(Secret::make().text());
  const std::vector<Blob> gathered = protocol.gather(writer.take());
  if (!mpi.first_gone()) mpi.close();  // MPI is not used any more
  BlobReader reader(gathered[0]);
  const Address address{host, reader.read<std::uint16_t>()};
  const Secret secret(reader.read_text());
  if (is_root) return accept_ranks(*listener, launch.rank_info.count, limits, {secret, warn});
  return connect_to_rank_0(address, launch.rank_info, limits, {[&secret] { return secret; }});
}

/// Rank 0's side of the rendezvous. If all processes are on one host and no secret is set, it
/// writes one to a file for them.
SocketTransport accept_ranks_at(const Launch& launch, const Limits& limits) {
  const bool leaves_file = launch.is_local() && launch.secret.is_empty();
  const Secret secret = leaves_file ? Secret::make() : read_secret(launch.secret);
  const TcpSocket listener = listen_at(*launch.rendezvous, launch.interface_name);
  std::optional<SecretFile> file;
  if (leaves_file)
    file.emplace(find_secret_folder(launch.runtime_folder), port_of(listener), secret);
  return accept_ranks(listener, launch.rank_info.count, limits, {secret, warn});
}

SocketTransport connect_to_rank_0_at(const Launch& launch, const Limits& limits) {
  if (!launch.is_local() || !launch.secret.is_empty()) {
    const Secret secret = read_secret(launch.secret);
    return connect_to_rank_0(*launch.rendezvous, launch.rank_info, limits,
                             {[&secret] { return secret; }});
  }
  const auto read_file = [&launch] {
    const std::string folder = find_secret_folder(launch.runtime_folder);
    return read_secret({"", secret_path(folder, launch.rendezvous->port)});
  };
  return connect_to_rank_0(*launch.rendezvous, launch.rank_info, limits, {read_file});
}

SocketTransport connect_ranks(const Launch& launch, const Limits& limits) {
  if (launch.rank_info.count == 1) return {launch.rank_info, {}};
  if (!launch.rendezvous) return rendezvous_over_mpi(launch, limits);
  return launch.rank_info.rank == 0 ? accept_ranks_at(launch, limits)
                                    : connect_to_rank_0_at(launch, limits);
}

std::vector<HostInfo> gather_hosts(StepProtocol& protocol, const HostInfo& own) {
  BlobWriter writer;
  for (const std::string* text : {&own.host, &own.host_id, &own.device, &own.problem})
    writer.write_text(*text);
  std::vector<HostInfo> all;
  for (const Blob& blob : protocol.gather(writer.take())) {
    BlobReader reader(blob);
    HostInfo& host = all.emplace_back();
    for (std::string* text : {&host.host, &host.host_id, &host.device, &host.problem})
      *text = reader.read_text();
  }
  return all;
}

/// Loads the modules and chooses a device. If that fails, `own.problem` gets the reason.
std::int32_t take_device(HostInfo& own, std::int32_t local_rank) {
  try {
    const auto devices = static_cast<std::int32_t>(GpuRuntime(open_gpu()).devices().size());
    const std::int32_t device = choose_device(local_rank, devices, !own.host_id.empty());
    char name[32] = {};
    if (const char* const error = open_nccl().get_pci_bus_id(device, name))
      throw Error(Fault::kMachine, error);
    own.device = name;
    return device;
  } catch (const Error& error) {
    own.problem = error.what();
    return 0;
  }
}

/// The resources of this process from the rendezvous to the shutdown.
struct NcclSession {
  NcclSession(const Launch& launch, const Limits& limits)
      : transport(connect_ranks(launch, limits)) {}

  SocketTransport transport;
  std::int32_t device = 0;
  std::string launch_order;  ///< see describe_launch_order()
};

std::optional<NcclSession>& session() {
  static std::optional<NcclSession> own;
  return own;
}

void start_session(NcclSession& own, const Launch& launch, const Limits& limits) {
  StepProtocol protocol(own.transport, limits);
  const char* const host_id = std::getenv("NCCL_HOSTID");
  HostInfo host{read_host_name(), host_id == nullptr ? "" : host_id, {}, {}};
  const std::int32_t rank = launch.rank_info.rank;
  const std::int32_t place = count_lower_on_host(gather_hosts(protocol, host), rank);
  own.launch_order = describe_launch_order([](const char* name) { return std::getenv(name); });
  if (rank == 0 && !own.launch_order.empty())
    std::fputs(("bubblescope: warning: " + own.launch_order + "\n").c_str(), stderr);
  own.device = take_device(host, launch.local_rank.value_or(place));
  if (const auto obstacle = find_obstacle(gather_hosts(protocol, host), rank))
    throw Error(Fault::kMachine, *obstacle);
}

std::unique_ptr<Processes> join_processes(const Limits& limits) {
  const Launch launch = read_launch([](const char* name) { return std::getenv(name); });
  NcclSession& own = session().emplace(launch, limits);
  start_session(own, launch, limits);
  return std::make_unique<Processes>(own.transport, limits, [] { session().reset(); });
}

Job start_nccl(const JobRequest& job, BackendRequest request) {
  NcclSession& own = *session();
  return start_nccl_job({open_gpu(), open_nccl(), own.transport, own.device, own.launch_order}, job,
                        std::move(request));
}

const BackendRegistrar nccl_registrar{[] {
  return BackendDef{.name = "nccl",
                    .summary = "one process per GPU, started by torchrun, srun or mpirun",
                    .join = join_processes};
}};

const DeviceBackendRegistrar nccl_device_registrar{
    [] { return DeviceBackendDef{.name = "nccl", .start = start_nccl}; }};

}  // namespace

}  // namespace bubblescope::exec

// Reads a launcher's variables.
#include "exec/nccl/launch.h"

#include <array>
#include <cstdlib>
#include <utility>

#include "exec/runtime/launchers.h"
#include "sim/ir/counted.h"
#include "sim/ir/error.h"
#include "sim/ir/number.h"

namespace bubblescope::exec {

namespace {

constexpr std::array<Launcher, 4> kLaunchers{kTorchrun, kMpiruns[0], kMpiruns[1], kSrun};

constexpr std::int32_t kMaxProcesses = 65'536;
constexpr std::int32_t kDefaultPort = 29500;
/// The ports for Slurm jobs, below the ephemeral ports of most systems.
constexpr std::int64_t kFirstJobPort = 16'000;
constexpr std::int64_t kJobPorts = 12'000;

/// Empty if the variable is not set, or set to an empty text.
std::optional<std::string> read_text(const Environment& environment, const char* name) {
  const char* const value = environment(name);
  if (value == nullptr || *value == '\0') return std::nullopt;
  return std::string(value);
}

std::optional<std::int64_t> read_number(const Environment& environment, const char* name,
                                        std::int64_t max_value) {
  const std::optional<std::string> text = read_text(environment, name);
  if (!text) return std::nullopt;
  const auto value = parse_number<std::int64_t>(*text);
  if (value && *value >= 0 && *value <= max_value) return value;
  throw Error(std::string("the backend nccl: ") + name + "='" + *text +
              "' is not a number from 0 to " + std::to_string(max_value) +
              "; let a launcher set it, or unset it");
}

std::optional<std::int32_t> read_rank(const Environment& environment, const char* name) {
  const auto value = read_number(environment, name, kMaxProcesses);
  return value ? std::optional(static_cast<std::int32_t>(*value)) : std::nullopt;
}

/// Reads rank and world size. Only one of the two would make the others wait forever, so it is an
/// error, unless the launcher is known to set only a rank.
std::optional<Launch> read_rank_info(const Environment& environment, const Launcher& names) {
  const auto rank = read_rank(environment, names.rank);
  const auto count = read_rank(environment, names.count);
  if (!count && (!rank || names.may_set_rank_only)) return std::nullopt;
  if (!rank || !count)
    throw Error(std::string("the backend nccl: ") + (rank ? names.rank : names.count) +
                " is set and " + (rank ? names.count : names.rank) +
                " is not; start it by torchrun, srun or mpirun, or set both");
  if (*rank >= *count)
    throw Error(std::string("the backend nccl: ") + names.rank + "=" + std::to_string(*rank) +
                " of " + names.count + "=" + counted(*count, "process") +
                " is impossible; correct one of them, ranks begin at 0");
  return Launch{names.name, {*rank, *count}, read_rank(environment, names.local_rank), {}};
}

/// Returns the same address with the next port.
Address after(Address address) {
  address.port = static_cast<std::uint16_t>(address.port == 65'535 ? 65'534 : address.port + 1);
  return address;
}

std::optional<Address> read_master(const Environment& environment) {
  const auto host = read_text(environment, "MASTER_ADDR");
  if (!host) return std::nullopt;
  const auto port = read_number(environment, "MASTER_PORT", 65'535);
  const Address address{*host, static_cast<std::uint16_t>(port.value_or(kDefaultPort))};
  // torchrun's agent listens at that port.
  return read_text(environment, "TORCHELASTIC_USE_AGENT_STORE") == "True" ? after(address)
                                                                          : address;
}

std::optional<Address> read_slurm(const Environment& environment) {
  auto hosts = read_text(environment, "SLURM_STEP_NODELIST");
  if (!hosts) hosts = read_text(environment, "SLURM_NODELIST");
  const auto job = read_number(environment, "SLURM_JOB_ID", std::int64_t{1} << 40);
  if (!hosts || !job) return std::nullopt;
  const auto step = read_number(environment, "SLURM_STEP_ID", std::int64_t{1} << 40).value_or(0);
  return Address{first_host(*hosts),
                 static_cast<std::uint16_t>(kFirstJobPort + (*job + 17 * step) % kJobPorts)};
}

/// Whether srun started this process directly; Slurm then sets PMI's variables too.
bool is_started_by_slurm(const Environment& environment, const RankInfo& rank_info) {
  const auto slurm = read_rank_info(environment, kLaunchers.back());
  return slurm && slurm->rank_info.rank == rank_info.rank &&
         slurm->rank_info.count == rank_info.count;
}

std::optional<Address> find_rendezvous(const Environment& environment, const RankInfo& rank_info) {
  if (const auto own = read_text(environment, "BUBBLESCOPE_RENDEZVOUS"))
    return parse_address(*own, "the backend nccl: BUBBLESCOPE_RENDEZVOUS=");
  if (const auto master = read_master(environment)) return master;
  if (const auto id = read_text(environment, "NCCL_COMM_ID"))
    return after(parse_address(*id, "the backend nccl: NCCL_COMM_ID="));
  if (is_started_by_slurm(environment, rank_info)) return read_slurm(environment);
  return std::nullopt;
}

/// Whether the launcher reports that all processes are on one host.
bool is_on_one_host(const Environment& environment, const Launch& launch) {
  const char* const here = launch.launcher == kTorchrun.name ? "LOCAL_WORLD_SIZE" : "";
  if (*here != '\0' && read_rank(environment, here) == launch.rank_info.count) return true;
  return is_started_by_slurm(environment, launch.rank_info) &&
         read_rank(environment, "SLURM_STEP_NUM_NODES") == 1;
}

Launch complete(const Environment& environment, Launch launch) {
  launch.rendezvous = find_rendezvous(environment, launch.rank_info);
  launch.interface_name = read_text(environment, "BUBBLESCOPE_INTERFACE").value_or("");
  launch.secret = {read_text(environment, "BUBBLESCOPE_SECRET").value_or(""),
                   read_text(environment, "BUBBLESCOPE_SECRET_FILE").value_or("")};
  launch.runtime_folder = read_text(environment, "XDG_RUNTIME_DIR").value_or("");
  const bool is_named = read_text(environment, "BUBBLESCOPE_RENDEZVOUS").has_value() ||
                        !launch.interface_name.empty();
  if (launch.rendezvous && !is_named && is_on_one_host(environment, launch))
    launch.rendezvous->host = "127.0.0.1";
  return launch;
}

}  // namespace

std::string first_host(const std::string& list) {
  const std::size_t bracket = list.find('[');
  const std::size_t comma = list.find(',');
  if (bracket == std::string::npos || comma < bracket) return list.substr(0, comma);
  const std::size_t end = list.find_first_of(",-]", bracket);
  const std::size_t close = list.find(']', bracket);
  if (end == std::string::npos || close == std::string::npos) return list;
  const std::string rest = list.substr(close + 1, list.find(',', close) - close - 1);
  return list.substr(0, bracket) + list.substr(bracket + 1, end - bracket - 1) + rest;
}

Launch read_launch(const Environment& environment) {
  for (const Launcher& names : kLaunchers) {
    std::optional<Launch> launch = read_rank_info(environment, names);
    if (!launch) continue;
    *launch = complete(environment, std::move(*launch));
    if (launch->rendezvous || launch->rank_info.count == 1 || launch->launcher == "mpirun")
      return *launch;
    throw Error("the backend nccl: " + counted(launch->rank_info.count, "process") +
                ", but no rendezvous address; set MASTER_ADDR to rank 0's host "
                "and MASTER_PORT to a free port");
  }
  return {};
}

std::string describe_launch_order(const Environment& environment) {
  const char* const value = environment("NCCL_LAUNCH_ORDER_IMPLICIT");
  if (value == nullptr || std::strtol(value, nullptr, 10) == 0) return "";
  return "NCCL launches the transfers of all links in the order in which they are enqueued "
         "(NCCL_LAUNCH_ORDER_IMPLICIT=" +
         std::string(value) + "), so links wait for each other";
}

}  // namespace bubblescope::exec

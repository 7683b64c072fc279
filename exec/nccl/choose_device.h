// Chooses a device for each process of a host, and checks that NCCL will accept the choice.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace bubblescope::exec {

/// The report of a process to the others before a job starts.
struct HostInfo {
  std::string host;
  std::string host_id;  ///< NCCL_HOSTID; empty: not set
  std::string device;   ///< its PCI bus id: "0000:1b:00.0"
  std::string problem;  ///< why it cannot take part; empty if it can
};

/// Returns the local rank of a rank: the number of lower ranks on its host.
std::int32_t count_lower_on_host(const std::vector<HostInfo>& all, std::int32_t rank);

/// The device for a local rank. If only one is visible, each process is assumed to have its own.
/// With an NCCL_HOSTID, processes may share devices. Throws Error (Fault::kMachine) if there are
/// too few.
std::int32_t choose_device(std::int32_t local_rank, std::int32_t devices, bool has_host_id);

/// Why these processes cannot run together, in one line: the first that has a problem, or two that
/// share a device, which NCCL would refuse.
std::optional<std::string> find_obstacle(const std::vector<HostInfo>& all, std::int32_t here);

}  // namespace bubblescope::exec

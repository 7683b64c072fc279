// Which device each process of a host gets, and whether NCCL will take that.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace bubblescope::exec {

/// What a process tells the others of itself before they start.
struct HostInfo {
  std::string host;
  std::string host_id;  ///< NCCL_HOSTID; empty: not set
  std::string device;   ///< its place on the host: "0000:1b:00.0"
  std::string problem;  ///< why it cannot take part; empty: it can
};

/// The place of a rank among those of its host.
std::int32_t count_lower_on_host(const std::vector<HostInfo>& all, std::int32_t rank);

/// The device of the process with this place on its host. Where only one is visible, each process
/// is taken to have been given its own; with an NCCL_HOSTID, processes may share devices. Throws
/// Error (Fault::kMachine) where there are too few.
std::int32_t choose_device(std::int32_t local_rank, std::int32_t devices, bool has_host_id);

/// Why these processes cannot run together, in one line: the first that has a problem, or two that
/// NCCL would refuse because they share a device.
std::optional<std::string> find_obstacle(const std::vector<HostInfo>& all, std::int32_t here);

}  // namespace bubblescope::exec

// Assigns devices to processes.
#include "exec/nccl/choose_device.h"

#include "sim/ir/counted.h"
#include "sim/ir/error.h"

namespace bubblescope::exec {

namespace {

std::string name_of(std::size_t rank) { return "rank " + std::to_string(rank); }

/// Whether NCCL takes two devices for one. It identifies hosts by NCCL_HOSTID, if that is set.
bool share_device(const HostInfo& left, const HostInfo& right) {
  return left.host == right.host && left.device == right.device &&
         (left.host_id.empty() || right.host_id.empty() || left.host_id == right.host_id);
}

}  // namespace

std::int32_t count_lower_on_host(const std::vector<HostInfo>& all, std::int32_t rank) {
  const auto here = static_cast<std::size_t>(rank);
  std::int32_t count = 0;
  for (std::size_t other = 0; other < here; ++other) count += all[other].host == all[here].host;
  return count;
}

std::int32_t choose_device(std::int32_t local_rank, std::int32_t devices, bool has_host_id) {
  if (devices == 0)
    throw Error(Fault::kMachine,
                "it has no visible CUDA device; see nvidia-smi and CUDA_VISIBLE_DEVICES");
  if (devices == 1) return 0;
  if (has_host_id) return local_rank % devices;
  if (local_rank < devices) return local_rank;
  throw Error(Fault::kMachine, "it is process " + std::to_string(local_rank + 1) +
                                   " of its host, which has " + counted(devices, "device") +
                                   "; start fewer processes per host");
}

std::optional<std::string> find_obstacle(const std::vector<HostInfo>& all, std::int32_t here) {
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    if (all[rank].problem.empty()) continue;
    if (all.size() == 1) return "the backend nccl: " + all[rank].problem;
    const bool own = rank == static_cast<std::size_t>(here);
    return "the backend nccl: " + name_of(rank) + (own ? " (this one, on " : " (on ") +
           all[rank].host + ") cannot take part: " + all[rank].problem;
  }
  for (std::size_t right = 1; right < all.size(); ++right)
    for (std::size_t left = 0; left < right; ++left)
      if (share_device(all[left], all[right]))
        return "the backend nccl: " + name_of(left) + " and " + name_of(right) +
               " share the device " + all[left].device + " of " + all[left].host +
               "; NCCL needs one per process: start fewer processes per host or, for a trial, give "
               "each process an NCCL_HOSTID of its own";
  return std::nullopt;
}

}  // namespace bubblescope::exec

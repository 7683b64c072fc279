// The GPUs of this process and their assignment to ranks.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "exec/gpu/host/gpu.h"

namespace bubblescope::exec {

/// The only rank of a process, where each rank has its own process and device.
struct OwnRank {
  std::int32_t rank = 0;
  std::int32_t device = 0;
};

class GpuMachine {
 public:
  /// Splits devices into partitions where ranks share them, and enables peer access between the
  /// devices of neighbouring ranks. `calls` is not copied. Throws Error.
  GpuMachine(const BubblescopeGpu& calls, std::int32_t ranks, Share share);

  /// Takes one whole device for the only rank of this process. Throws Error.
  GpuMachine(const BubblescopeGpu& calls, std::int32_t ranks, const OwnRank& own);

  /// Whether the rank runs in this process.
  bool runs(std::int32_t rank) const { return !here_ || *here_ == rank; }

  const GpuRuntime& gpu() const { return gpu_; }
  std::int32_t ranks() const { return static_cast<std::int32_t>(places_.size()); }
  const RankPlace& place(std::int32_t rank) const {
    return places_[static_cast<std::size_t>(rank)];
  }
  const BubblescopeDevice& device_of(std::int32_t rank) const {
    return devices_[static_cast<std::size_t>(place(rank).device)];
  }
  /// Null if the rank has the whole device.
  void* partition(std::int32_t rank) const {
    return partitions_[static_cast<std::size_t>(rank)].get();
  }
  /// Returns the number of devices that have ranks.
  std::int32_t device_count() const { return places_.back().device + 1; }

  /// The largest number of ranks that share a device; they are neighbours.
  std::int32_t ranks_per_device() const { return (ranks() + device_count() - 1) / device_count(); }

  /// Waits until nothing runs on any device.
  void await() const;

  /// Returns a text such as "NVIDIA H200, 132 multiprocessors, CUDA driver 13.0; 8 ranks with 16
  /// multiprocessors each".
  std::string describe() const;
  /// PCI addresses of the devices that have ranks; an address that is unknown is empty.
  std::vector<std::string> buses() const;

 private:
  void fit_partitions(std::size_t first_rank, std::int32_t parts);

  GpuRuntime gpu_;
  std::vector<BubblescopeDevice> devices_;
  std::vector<RankPlace> places_;      ///< [rank]
  std::vector<GpuHandle> partitions_;  ///< [rank]
  std::int32_t planned_size_ = 0;      ///< of partitions that the driver could not make; 0: none
  std::optional<std::int32_t> here_;   ///< the only rank of this process; empty: all run here
};

}  // namespace bubblescope::exec

// The GPUs of this process, shared out to ranks.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "exec/gpu/host/gpu.h"

namespace bubblescope {

/// The one rank that a process runs, where each rank has a process and a device.
struct OwnRank {
  std::int32_t rank = 0;
  std::int32_t device = 0;
};

class GpuMachine {
 public:
  /// Cuts devices into partitions where ranks share them, and links devices that are neighbours.
  /// `calls` is not copied. Throws Error.
  GpuMachine(const BubblescopeGpu& calls, std::int32_t ranks, Share share);

  /// Only one rank's device, whole. Throws Error.
  GpuMachine(const BubblescopeGpu& calls, std::int32_t ranks, const OwnRank& own);

  /// Whether a rank's ops run, and its memory is, in this process.
  bool runs(std::int32_t rank) const { return !here_ || *here_ == rank; }

  const Gpu& gpu() const { return gpu_; }
  std::int32_t ranks() const { return static_cast<std::int32_t>(places_.size()); }
  const RankPlace& place(std::int32_t rank) const {
    return places_[static_cast<std::size_t>(rank)];
  }
  /// Null: the rank's device whole.
  void* partition(std::int32_t rank) const {
    return partitions_[static_cast<std::size_t>(rank)].get();
  }
  /// The devices that have ranks, from 0.
  std::int32_t device_count() const { return places_.back().device + 1; }

  /// The most ranks that share a device; they are neighbours.
  std::int32_t ranks_per_device() const { return (ranks() + device_count() - 1) / device_count(); }

  /// "NVIDIA H200, 132 multiprocessors, CUDA driver 13.0; 8 ranks with 16 multiprocessors each".
  std::string describe() const;
  /// The addresses of the devices that have ranks; empty for those without.
  std::vector<std::string> buses() const;

 private:
  Gpu gpu_;
  std::vector<BubblescopeDevice> devices_;
  std::vector<RankPlace> places_;      ///< [rank]
  std::vector<GpuHandle> partitions_;  ///< [rank]
  std::optional<std::int32_t> here_;   ///< the only rank that runs here
};

}  // namespace bubblescope

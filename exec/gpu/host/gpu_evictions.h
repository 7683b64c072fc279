// Offloading of activations to the host or to another rank, and reloading. The copies run on
// streams of their own, beside the ops of the rank.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include "exec/gpu/host/gpu_layers.h"
#include "exec/gpu/host/job.h"

namespace bubblescope::exec {

using GpuBuffers = std::vector<GpuBuffer>;

Bytes bytes_of(const GpuBuffers& buffers);

/// The memory that an EVICT copies away, in a fixed order. Pooled matrices are freed and become
/// empty.
GpuBuffers release_for_evict(ActivationPool& pool, const std::vector<GpuMatrix*>& matrices);
/// The memory to which a LOAD copies it. Matrices without memory are allocated from the pool.
GpuBuffers acquire_for_load(ActivationPool& pool, const std::vector<GpuMatrix*>& matrices);

/// The memory in which offload targets hold what ranks evict.
class GpuEvictions {
 public:
  /// Nothing is copied.
  GpuEvictions(const GpuMachine& machine, const JobRequest& job);

  /// Declares that ranks use this memory on several streams; `order` is not copied.
  void set_order(const HappensBefore& order);
  /// Call when all enqueued work has ended.
  void forget_users();

  /// Allocates memory of these sizes for an EVICT.
  GpuBuffers acquire_offloaded(InstructionId id, const Instruction& evict, const GpuBuffers& sizes);
  /// Returns the memory that the matching EVICT filled; it may be reused after the LOAD. Throws
  /// Error if there is none.
  GpuBuffers release_offloaded(InstructionId id, const Instruction& load);

  void copy(const GpuBuffers& to, const GpuBuffers& from, void* stream) const;

  /// The sizes that a rank of another process evicts to this one; without data.
  const GpuBuffers& expected(const Op& evict) const {
    return expected_.at(evict.stage)[static_cast<std::size_t>(evict.slice)];
  }

 private:
  using Place = std::tuple<std::int32_t, std::int32_t, std::int16_t>;  ///< stage, microbatch, slice

  ActivationPool& pool_of(InstructionId id, const Instruction& copy);

  const GpuRuntime& gpu_;
  std::vector<ActivationPool> pools_;  ///< [rank]: what its offload target holds for it
  std::map<Place, GpuBuffers> kept_;
  std::map<std::int32_t, std::vector<GpuBuffers>> expected_;  ///< [stage][slice]
};

}  // namespace bubblescope::exec

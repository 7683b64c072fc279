// Activations that leave their rank's memory and come back: to the host, or to another rank that
// keeps them. Copies run on streams of their own, beside the rank's ops.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include "exec/gpu/host/gpu_layers.h"
#include "exec/gpu/host/job.h"

namespace bubblescope {

using GpuPieces = std::vector<GpuPiece>;

Bytes bytes_of(const GpuPieces& pieces);

/// What an EVICT copies away, in order: pooled matrices are given back and become empty.
GpuPieces leave(ActivationPool& pool, const std::vector<GpuMatrix*>& matrices);
/// Where a LOAD copies it to: matrices that have no memory get some of the pool.
GpuPieces come_back(ActivationPool& pool, const std::vector<GpuMatrix*>& matrices);

/// The memory of those that keep what ranks evict.
class GpuEvictions {
 public:
  /// Nothing is copied.
  GpuEvictions(const GpuMachine& machine, const JobRequest& job);

  /// Ranks take and give memory on several streams; not copied.
  void share(const CertainOrder& order);
  /// Everything that was enqueued has ended.
  void settle();

  /// An EVICT's, of these sizes.
  GpuPieces keep(InstructionId id, const Instruction& evict, const GpuPieces& sizes);
  /// Its LOAD's: the memory is used again behind the LOAD. Throws Error where nothing was kept.
  GpuPieces give_up(InstructionId id, const Instruction& load);

  void copy(const GpuPieces& to, const GpuPieces& from, void* stream) const;

  /// What comes from a rank of another process, which evicts to one of this: sizes alone.
  const GpuPieces& expected(const Op& evict) const {
    return expected_.at(evict.stage)[static_cast<std::size_t>(evict.slice)];
  }

 private:
  using Place = std::tuple<std::int32_t, std::int32_t, std::int16_t>;  ///< stage, microbatch, slice

  ActivationPool& pool_of(InstructionId id, const Instruction& copy);

  const Gpu& gpu_;
  std::vector<ActivationPool> pools_;  ///< [rank]: what its keeper keeps for it
  std::map<Place, GpuPieces> kept_;
  std::map<std::int32_t, std::vector<GpuPieces>> expected_;  ///< [stage][slice]
};

}  // namespace bubblescope

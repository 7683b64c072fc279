// Activations that leave their rank's memory and come back: to the host, or to another rank that
// keeps them. Copies run on streams of their own, beside the rank's ops.
#pragma once

#include <vector>

#include "exec/gpu/gpu_layers.h"
#include "sim/ir/schedule.h"

namespace bubblescope {

class GpuEvictions {
 public:
  /// Nothing is copied. Throws Error where another process keeps what a rank of this one evicts.
  GpuEvictions(const GpuMachine& machine, const Schedule& schedule);

  /// Ranks take and give memory on several streams; not copied.
  void share(const CertainOrder& order);
  /// Everything that was enqueued has ended.
  void settle();

  /// A copy that is enqueued.
  struct Copy {
    InstructionId id = 0;
    std::int32_t rank = 0;  ///< whose memory is evicted
    void* stream = nullptr;
  };
  /// Copies what is there to its keeper; pooled matrices are given back and become empty. Returns
  /// where all of them are now.
  std::vector<GpuMatrix> move_out(const Copy& copy, ActivationPool& pool,
                                  const std::vector<GpuMatrix*>& matrices);
  /// The way back, to memory of the pool where a matrix has none.
  void move_back(const Copy& copy, ActivationPool& pool, const std::vector<GpuMatrix>& elsewhere,
                 const std::vector<GpuMatrix*>& matrices);

 private:
  ActivationPool& pool_of(const Copy& copy);

  const Gpu& gpu_;
  std::vector<ActivationPool> elsewhere_;  ///< [rank]: what its keeper keeps for it
};

}  // namespace bubblescope

// GEMMs that are followed by a GELU or its gradient. It is fused if that is asked for and cuBLASLt
// supports it, or else runs as a kernel. Both ways allocate the same memory.
#pragma once

#include <utility>
#include <vector>

#include "exec/gpu/host/epilogue.h"
#include "exec/gpu/host/gpu_matrix.h"
#include "exec/gpu/host/rank_stream.h"

namespace bubblescope::exec {

/// A GEMM and the GELU that follows it.
struct GeluOutput {
  GpuMatrix before;  ///< left * right
  GpuMatrix after;   ///< gelu(before)
};

class GpuGelu {
 public:
  /// `stream` is not copied.
  GpuGelu(RankStream& stream, Epilogue epilogue) : stream_(stream), epilogue_(epilogue) {}

  /// With keeps_before = false, the input of the GELU is not written: no backward reads it.
  GeluOutput gemm(const GpuOperand& left, const GpuOperand& right, bool keeps_before = true);
  /// Computes left * right * gelu'(before).
  GpuMatrix gemm_grad(const GpuOperand& left, const GpuOperand& right, const GpuMatrix& before);

  /// The GEMMs for which fusion was tried.
  std::vector<EpilogueUse> uses() const;

 private:
  bool can_fuse(const BubblescopeGemm& gemm);

  RankStream& stream_;
  Epilogue epilogue_;
  std::vector<std::pair<EpilogueUse, bool>> uses_;  ///< with or without the GELU's input
};

}  // namespace bubblescope::exec

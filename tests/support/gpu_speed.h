// Measures the speed of a GPU for the work of stages, and the overhead of the executor.
#pragma once

#include <string>
#include <vector>

#include "exec/gpu/calls.h"
#include "exec/gpu/host/job.h"

namespace bubblescope::tests {

/// The time of one GEMM of a stage as the stage runs it, and as a plain GEMM of the same size.
struct GemmSpeed {
  std::string name;
  Nanos in_stage = 0;
  Nanos with_sm_count = 0;     ///< where cuBLASLt gets the number of multiprocessors
  Nanos plain = 0;             ///< without transposes or additions
  double multiplications = 0;  ///< and as many additions
};

/// Times all GEMMs of a block's forward and backward, on the multiprocessors that a rank gets if
/// this many share a device. Throws Error.
std::vector<GemmSpeed> time_gemms(const BubblescopeGpu& calls, std::int32_t ranks,
                                  const exec::TransformerShape& model, exec::Precision precision);

/// The time of a layer that is a kernel of ours, and the least that it must move or compute.
struct LayerSpeed {
  std::string name;
  Nanos time = 0;
  double bytes = 0;            ///< each input read and each output written once
  double multiplications = 0;  ///< and as many additions; 0 where bytes limit the layer
};

/// Times a copy, norms, softmax and flash attention, and their gradients, in bfloat16 on a whole
/// device. The copy is the first and shows what the memory can do.
std::vector<LayerSpeed> time_layers(const BubblescopeGpu& calls,
                                    const exec::TransformerShape& model);

/// The times of a block's GELU and its gradient, each with the GEMM before it: fused and separate.
struct EpilogueSpeed {
  Nanos fused = 0;
  Nanos separate = 0;
  int unknown = 0;  ///< how many of the two the library cannot fuse
};

/// Measures in bfloat16, on the multiprocessors that a rank gets if this many share a device.
EpilogueSpeed time_epilogues(const BubblescopeGpu& calls, std::int32_t ranks,
                             const exec::TransformerShape& model);

/// The time of one rank's step by the executor, and of its kernels back to back on one stream
/// without events.
struct ExecutorSpeed {
  Nanos step = 0;
  Nanos back_to_back = 0;
};

/// Returns medians. Throws Error.
ExecutorSpeed time_executor(const BubblescopeGpu& calls, const exec::TrainingOptions& options,
                            const exec::DeviceOptions& device);

}  // namespace bubblescope::tests

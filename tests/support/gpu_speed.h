// How fast a GPU does what stages ask of it, and what the executor adds to that.
#pragma once

#include <string>
#include <vector>

#include "exec/gpu/calls.h"
#include "exec/gpu/host/job.h"
#include "exec/training/training.h"

namespace bubblescope {

/// One product of a stage: as the stage asks for it, and as a plain one of the same size.
struct ProductSpeed {
  std::string name;
  Nanos in_stage = 0;
  Nanos plain = 0;             ///< not told the number of multiprocessors, nothing turned or added
  double multiplications = 0;  ///< and additions, as many
};

/// Everything that a block multiplies forward and backward, on the multiprocessors that a rank gets
/// when a device is shared by so many. Throws Error.
std::vector<ProductSpeed> time_products(const BubblescopeGpu& calls, std::int32_t ranks,
                                        const TransformerShape& model, Precision precision);

/// A block's GELU and its gradient, each with the product before it: within that product and behind
/// it.
struct EpilogueSpeed {
  Nanos fused = 0;
  Nanos separate = 0;
  int unknown = 0;  ///< of the two, that the library does not know within a product
};

/// In bfloat16, on the multiprocessors that a rank gets when a device is shared by so many.
EpilogueSpeed time_epilogues(const BubblescopeGpu& calls, std::int32_t ranks,
                             const TransformerShape& model);

/// A step of one rank: by the executor, and its kernels on one stream, with no event between them.
struct ExecutorSpeed {
  Nanos step = 0;
  Nanos back_to_back = 0;
};

/// Medians. Throws Error.
ExecutorSpeed time_executor(const BubblescopeGpu& calls, const TrainingOptions& options,
                            const DeviceOptions& device);

}  // namespace bubblescope

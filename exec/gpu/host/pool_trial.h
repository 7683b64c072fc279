// What the ops of a stage take from their rank's pool, found by running each once without a device.
#pragma once

#include <vector>

#include "exec/gpu/host/job.h"

namespace bubblescope {

/// Of one op.
struct PoolChange {
  Bytes added = 0;   ///< that are held when it has ended, beyond those before
  Bytes during = 0;  ///< the most beyond those before, while it runs

  /// Of one op and then another.
  PoolChange then(const PoolChange& other) const;
};

/// Of the ops of one slice on a stage.
struct SlicePool {
  PoolChange forward;
  PoolChange recompute;
  PoolChange input_grad;
  PoolChange weight_grad;
  std::vector<Bytes> leaving;  ///< matrix by matrix, what is copied where it is evicted;
  Bytes kept = 0;              ///< so much of it is the pool's
};

/// [slice]. Slices go forward from the first to the last, and back.
std::vector<SlicePool> try_stage(const Schedule& schedule, const TrainingOptions& options,
                                 const DeviceOptions& device, std::int32_t stage);

}  // namespace bubblescope

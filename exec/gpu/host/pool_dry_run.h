// Predicts the memory that the ops of a stage take from their rank's pool, by a dry run of each op
// without a device.
#pragma once

#include <vector>

#include "exec/gpu/host/device_options.h"
#include "exec/training/serial_training.h"
#include "sim/ir/schedule.h"
#include "sim/ir/units.h"

namespace bubblescope::exec {

/// The effect of one op on the pool.
struct PoolChange {
  Bytes added = 0;   ///< bytes held after the op, relative to before
  Bytes during = 0;  ///< peak during the op, relative to before

  /// Returns the effect of this op followed by another.
  PoolChange then(const PoolChange& other) const;
};

/// The effects of the ops of one slice on a stage.
struct SlicePool {
  PoolChange forward;
  PoolChange recompute;
  PoolChange input_grad;
  PoolChange weight_grad;
  std::vector<Bytes> leaving;  ///< sizes of the matrices that an EVICT copies;
  Bytes kept = 0;              ///< how many of these bytes are in the pool
};

/// [slice]. Slices run forward from first to last, and backward from last to first.
std::vector<SlicePool> dry_run_stage(const Schedule& schedule, const TrainingOptions& options,
                                     const DeviceOptions& device, std::int32_t stage);

}  // namespace bubblescope::exec

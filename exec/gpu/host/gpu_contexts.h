// What the slices of micro-batches share on their stages' devices, while it is needed.
#pragma once

#include <vector>

#include "exec/gpu/host/gpu_stage.h"
#include "sim/ir/schedule.h"

namespace bubblescope {

class GpuContexts {
 public:
  /// The schedule is not copied.
  explicit GpuContexts(const Schedule& schedule);

  /// Null where sequences are whole. It is made for the first op that asks.
  const GpuSliceContext* find(const Op& op, GpuLayers& layers, const GpuStage& stage);

  /// Behind an op: what is shared goes where its slice is the last that needs it.
  void forget(const Op& op, std::int32_t last_slice, GpuLayers& layers);

 private:
  GpuSliceContext& at(const Op& op);

  const Schedule& schedule_;
  std::vector<GpuSliceContext> contexts_;  ///< [stage * microbatches + microbatch]
};

}  // namespace bubblescope

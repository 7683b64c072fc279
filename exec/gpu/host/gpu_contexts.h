// Keys, values and their gradients that the slices of a micro-batch share on a stage.
#pragma once

#include <vector>

#include "exec/gpu/host/gpu_stage.h"
#include "sim/ir/schedule.h"

namespace bubblescope::exec {

class GpuContexts {
 public:
  /// `schedule` is not copied.
  explicit GpuContexts(const Schedule& schedule);

  /// Returns null if sequences are not sliced. The first op that needs a context creates it.
  const GpuSliceContext* find(const Op& op, RankStream& stream, const GpuStage& stage);

  /// Call after an op: frees the context if no later slice needs it.
  void free_if_unneeded(const Op& op, std::int32_t last_slice, RankStream& stream);

 private:
  GpuSliceContext& at(const Op& op);

  const Schedule& schedule_;
  std::vector<GpuSliceContext> contexts_;  ///< [stage * microbatches + microbatch]
};

}  // namespace bubblescope::exec

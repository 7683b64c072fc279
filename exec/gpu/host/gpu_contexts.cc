// Keeps one context per stage and micro-batch.
#include "exec/gpu/host/gpu_contexts.h"

#include <utility>

namespace bubblescope::exec {

GpuContexts::GpuContexts(const Schedule& schedule)
    : schedule_(schedule),
      contexts_(static_cast<std::size_t>(schedule.stages()) *
                static_cast<std::size_t>(schedule.shape.microbatches)) {}

const GpuSliceContext* GpuContexts::find(const Op& op, RankStream& stream, const GpuStage& stage) {
  if (schedule_.shape.slices == 1) return nullptr;
  GpuSliceContext& context = at(op);
  if (context.qkv.empty()) context = make_context(stream, stage);
  return &context;
}

void GpuContexts::free_if_unneeded(const Op& op, std::int32_t last_slice, RankStream& stream) {
  if (schedule_.shape.slices == 1 || op.slice != last_slice) return;
  drop(stream, std::exchange(at(op), {}));
}

GpuSliceContext& GpuContexts::at(const Op& op) {
  return contexts_[static_cast<std::size_t>(std::int64_t{op.stage} * schedule_.shape.microbatches +
                                            op.microbatch)];
}

}  // namespace bubblescope::exec

// Runs one micro-batch forward and backward, as gpu_training.cc enqueues it.
#include "exec/gpu/host/pool_dry_run.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "exec/gpu/host/counting_gpu.h"
#include "exec/gpu/host/gpu_stage.h"
#include "sim/ir/recompute.h"

namespace bubblescope::exec {

namespace {

/// A stage whose weights have shapes but no memory.
GpuStage outline(const Schedule& schedule, const TransformerShape& shape, std::int32_t stage,
                 BubblescopeDtype dtype) {
  GpuStage result;
  result.shape = shape;
  result.first = schedule.is_first(stage);
  result.last = schedule.is_last(stage);
  for (const WeightOutline& weight : outline_weights(shape, {result.first, result.last})) {
    const GpuMatrix floats{nullptr, weight.rows, weight.columns, kBubblescopeFloat32};
    result.weights.push_back({floats, {nullptr, weight.rows, weight.columns, dtype}, floats});
  }
  return result;
}

class StageDryRun {
 public:
  StageDryRun(GpuLayers& layers, GpuStage stage, const Schedule& schedule, Recompute recompute)
      : layers_(layers), stage_(std::move(stage)), schedule_(schedule), recompute_(recompute) {}

  std::vector<SlicePool> run() {
    const std::int32_t slices = schedule_.shape.slices;
    std::vector<SlicePool> pools(static_cast<std::size_t>(slices));
    saved_.resize(pools.size());
    for (std::int32_t slice = 0; slice < slices; ++slice) {
      SlicePool& pool = pools[static_cast<std::size_t>(slice)];
      pool.forward = watch([&] { forward_slice(slice); });
      for (const GpuMatrix& matrix : kept_of(slice)) {
        pool.leaving.push_back(matrix.bytes());
        if (matrix.pooled) pool.kept += matrix.bytes();
      }
    }
    for (std::int32_t slice = slices; slice-- > 0 && !schedule_.forward_only;) {
      SlicePool& pool = pools[static_cast<std::size_t>(slice)];
      if (recompute_ != Recompute::kNone) pool.recompute = watch([&] { recompute_slice(slice); });
      GpuWeightWork work;
      pool.input_grad = watch([&] { work = backward_slice(slice); });
      pool.weight_grad = watch([&] { run_weight_grad(layers_, stage_, work, tokens_of(slice)); });
    }
    return pools;
  }

 private:
  template <class Op>
  PoolChange watch(Op op) {
    ActivationPool& pool = layers_.stream.pool();
    const Bytes before = pool.held();
    pool.reset_peak();
    op();
    return {pool.held() - before, pool.peak() - before};
  }

  GpuTokens tokens_of(std::int32_t slice) const {
    return {nullptr, nullptr, nullptr,
            positions_of(stage_.shape.sequence, schedule_.shape.slices, slice)};
  }

  /// A matrix that is passed between stages; it is not in the pool.
  GpuMatrix between(std::int32_t slice) const {
    static char mail = 0;
    const std::int32_t rows = stage_.shape.batch * tokens_of(slice).positions.count;
    return {&mail, rows, stage_.shape.width, layers_.stream.dtype()};
  }

  GpuActivations& saved_of(std::int32_t slice) { return saved_[static_cast<std::size_t>(slice)]; }

  /// The matrices that the forward keeps for the backward.
  std::vector<GpuMatrix> kept_of(std::int32_t slice) {
    if (recompute_ == Recompute::kFull && stage_.first) return {};
    if (recompute_ == Recompute::kFull) return {between(slice)};
    std::vector<GpuMatrix> kept;
    for (const GpuMatrix* const matrix : saved_of(slice).matrices()) kept.push_back(*matrix);
    return kept;
  }

  const GpuSliceContext* context() {
    if (schedule_.shape.slices == 1) return nullptr;
    if (!context_) context_ = make_context(layers_.stream, stage_);
    return &*context_;
  }

  GpuForwardRun forward_of(std::int32_t slice) {
    return {stage_.first ? GpuMatrix() : between(slice), tokens_of(slice),
            stage_.last ? GpuMatrix() : between(slice), context()};
  }

  void forward_slice(std::int32_t slice) {
    GpuActivations result = run_forward(layers_, stage_, forward_of(slice));
    const bool is_last_use = schedule_.forward_only && slice + 1 == schedule_.shape.slices;
    if (schedule_.forward_only || recompute_ == Recompute::kFull)
      drop(layers_.stream, std::exchange(result, {}));
    if (recompute_ == Recompute::kSelective) drop_attention(layers_.stream, result);
    saved_of(slice) = std::move(result);
    if (is_last_use) free_context();
  }

  void recompute_slice(std::int32_t slice) {
    if (recompute_ == Recompute::kSelective)
      return make_attention(layers_, stage_, saved_of(slice), tokens_of(slice).positions,
                            context());
    GpuForwardRun again = forward_of(slice);
    again.output = {};
    saved_of(slice) = run_forward(layers_, stage_, again);
  }

  GpuWeightWork backward_slice(std::int32_t slice) {
    GpuWeightWork work = run_input_grad(
        layers_, stage_,
        {saved_of(slice), tokens_of(slice), stage_.last ? GpuMatrix() : between(slice),
         stage_.first ? GpuMatrix() : between(slice), 1, context()});
    if (slice == 0) free_context();
    return work;
  }

  void free_context() {
    if (context_) drop(layers_.stream, *context_);
    context_.reset();
  }

  GpuLayers& layers_;
  GpuStage stage_;
  const Schedule& schedule_;
  Recompute recompute_;
  std::optional<GpuSliceContext> context_;
  std::vector<GpuActivations> saved_;  ///< [slice]
};

}  // namespace

PoolChange PoolChange::then(const PoolChange& other) const {
  return {added + other.added, std::max(during, added + other.during)};
}

std::vector<SlicePool> dry_run_stage(const Schedule& schedule, const TrainingOptions& options,
                                     const DeviceOptions& device, std::int32_t stage) {
  const BubblescopeDtype dtype = dtype_of(device.precision);
  const GpuMachine machine(counting_gpu_calls(), 1, Share::kStreams);
  GpuLayers layers(machine, 0, {dtype, device.attention});
  const Recompute recompute =
      recomputes(schedule, stage) ? schedule.recompute(stage) : Recompute::kNone;
  return StageDryRun(layers, outline(schedule, options.model, stage, dtype), schedule, recompute)
      .run();
}

}  // namespace bubblescope::exec

// Launches the layers.
#include "exec/gpu/host/gpu_layers.h"

#include <string>

namespace bubblescope::exec {

GpuLayers::GpuLayers(const GpuMachine& machine, std::int32_t rank, const LayerOptions& options)
    : gpu_(machine.gpu()),
      dtype_(options.dtype),
      attention_(options.attention),
      epilogue_(options.epilogue),
      pool_(machine.gpu(), machine.place(rank).device) {
  const RankPlace& place = machine.place(rank);
  blas_handle_ = gpu_.create_blas_handle(place, options.sm_hint == SmHint::kMultiprocessors);
  const std::string library = "cuBLASLt " + std::to_string(gpu_.blas_version(blas_handle_));
  computed_by_ = {{"`attention`", attention_ == Attention::kFlash ? "flash" : "softmax"},
                  {"`epilogue`", epilogue_ == Epilogue::kFused ? "fused" : "separate"},
                  {"products by", library + " on " + machine.device_of(rank).name + ", " +
                                      std::to_string(place.multiprocessors) + " multiprocessors"}};
}

GpuMatrix GpuLayers::make(std::int32_t rows, std::int32_t columns) {
  GpuMatrix matrix{nullptr, rows, columns, dtype_, true};
  matrix.data = pool_.acquire(static_cast<std::size_t>(matrix.bytes()));
  return matrix;
}

GpuMatrix GpuLayers::make_floats(std::int32_t rows, std::int32_t columns) {
  GpuMatrix matrix{nullptr, rows, columns, kBubblescopeFloat32, true};
  matrix.data = pool_.acquire(static_cast<std::size_t>(matrix.bytes()));
  return matrix;
}

void GpuLayers::drop(const GpuMatrix& matrix) {
  if (matrix.pooled) pool_.release(matrix.data, static_cast<std::size_t>(matrix.bytes()));
}

void GpuLayers::launch(const GpuMatrix& shape, const KernelArguments& arguments) const {
  gpu_.launch({dtype_, shape.rows, shape.columns, arguments}, stream_);
}

void GpuLayers::multiply(const GpuOperand& left, const GpuOperand& right, const GpuMatrix& target,
                         const GpuMatrix& source) {
  gpu_.multiply(blas_handle_, gemm_of(left, right, target, source), stream_);
}

GpuMatrix GpuLayers::gemm(const GpuOperand& left, const GpuOperand& right) {
  const GpuMatrix target = make(left.transposed ? left.matrix.columns : left.matrix.rows,
                                right.transposed ? right.matrix.rows : right.matrix.columns);
  gpu_.multiply(blas_handle_, gemm_of(left, right, target), stream_);
  return target;
}

/// One GEMM per sequence, all with the same right operand.
void GpuLayers::multiply_into(const GpuMatrix& left, const GpuMatrix& right, const GpuMatrix& whole,
                              const SequenceRows& rows) {
  const GpuMatrix first = rows_of(whole, rows.positions.begin, rows.positions.count);
  BubblescopeGemm gemm{};
  gemm.rows = rows.positions.count;
  gemm.columns = whole.columns;
  gemm.k = left.columns;
  gemm.batch = whole.rows / rows.sequence;
  gemm.left = {left.data, left.columns, std::int64_t{rows.positions.count} * left.columns, 0};
  gemm.right = {right.data, right.columns, 0, 0};
  gemm.target = first.data;
  gemm.target_stride = whole.columns;
  gemm.target_step = std::int64_t{rows.sequence} * whole.columns;
  gemm.scale = 1;
  gemm.dtype = left.dtype;
  gemm.target_dtype = whole.dtype;
  gpu_.multiply(blas_handle_, gemm, stream_);
}

GpuMatrix GpuLayers::take_rows(const GpuMatrix& whole, const SequenceRows& rows) {
  const std::int32_t batch = whole.rows / rows.sequence;
  const std::int32_t count = rows.positions.count;
  const GpuMatrix taken = make(batch * count, whole.columns);
  for (std::int32_t at = 0; at < batch; ++at) {
    const GpuMatrix from = rows_of(whole, at * rows.sequence + rows.positions.begin, count);
    gpu_.copy(rows_of(taken, at * count, count).data, from.data,
              static_cast<std::size_t>(from.bytes()), stream_);
  }
  return taken;
}

void GpuLayers::clear(const GpuMatrix& matrix) {
  gpu_.clear(matrix.data, static_cast<std::size_t>(matrix.bytes()), stream_);
}

GpuMatrix GpuLayers::embed(const GpuMatrix& embedding, const GpuMatrix& position,
                           const std::int32_t* tokens, std::int32_t rows) {
  const GpuMatrix target = make(rows, embedding.columns);
  launch(target, EmbedArguments{target.data, embedding.data, position.data, tokens, position.rows});
  return target;
}

void GpuLayers::embed_grad(const GpuMatrix& grad, const std::int32_t* tokens,
                           const GpuMatrix& embedding_grad, const GpuMatrix& position_grad) {
  launch(grad, EmbedGradArguments{embedding_grad.floats(), position_grad.floats(), grad.data,
                                  tokens, position_grad.rows});
}

GpuMatrix GpuLayers::norm(const GpuMatrix& input, const GpuMatrix& gain) {
  const GpuMatrix target = make(input.rows, input.columns);
  launch(input, NormArguments{target.data, input.data, gain.data});
  return target;
}

NormGrad GpuLayers::norm_grad(const NormGradOperands& norm) {
  const GpuMatrix& input = norm.input;
  const GpuMatrix target =
      norm.target.data != nullptr ? norm.target : make(input.rows, input.columns);
  const GpuMatrix inverses = make_floats(input.rows, 1);
  launch(input, NormGradArguments{target.data, input.data, norm.gain.data, norm.grad.data,
                                  norm.added.data, inverses.floats()});
  const GpuMatrix gain_grad = make_floats(1, input.columns);
  launch(input,
         GainGradArguments{gain_grad.floats(), input.data, norm.grad.data, inverses.floats()});
  drop(inverses);
  return {target, gain_grad};
}

void GpuLayers::cross_entropy(const GpuMatrix& logits, const std::int32_t* targets, float* loss) {
  const GpuMatrix losses = make_floats(1, logits.rows);
  launch(logits, CrossEntropyArguments{logits.data, targets, losses.floats()});
  launch(losses, MeanArguments{loss, losses.floats()});
  drop(losses);
}

void GpuLayers::cross_entropy_grad(const GpuMatrix& probabilities, const std::int32_t* targets,
                                   float scale) {
  launch(probabilities, CrossEntropyGradArguments{probabilities.data, targets, scale});
}

void GpuLayers::add(const GpuMatrix& to, const GpuMatrix& values) {
  launch(values, AddArguments{to.floats(), values.floats()});
}

}  // namespace bubblescope::exec

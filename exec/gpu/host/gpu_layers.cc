// Launches the layers.
#include "exec/gpu/host/gpu_layers.h"

namespace bubblescope::exec {

GpuLayers::GpuLayers(const GpuMachine& machine, std::int32_t rank, const LayerOptions& options)
    : gpu_(machine.gpu()),
      dtype_(options.dtype),
      attention_(options.attention),
      epilogue_(options.epilogue),
      pool_(machine.gpu(), machine.place(rank).device) {
  RankPlace place = machine.place(rank);
  if (options.sm_hint == SmHint::kNothing) place.multiprocessors = 0;  // for cuBLASLt, 0 means all
  blas_handle_ = gpu_.create_blas_handle(place);
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

BubblescopeLaunch GpuLayers::order(Kernel kernel, const GpuMatrix& shape) const {
  BubblescopeLaunch launch{};
  launch.kernel = static_cast<std::int32_t>(kernel);
  launch.dtype = dtype_;
  launch.rows = shape.rows;
  launch.columns = shape.columns;
  launch.period = 1;
  return launch;
}

void GpuLayers::multiply(const GpuOperand& left, const GpuOperand& right, const GpuMatrix& target,
                         const GpuMatrix& source) {
  gpu_.multiply(blas_handle_, gemm_of(left, right, target, source), stream_);
}

GpuMatrix GpuLayers::gemm(const GpuOperand& left, const GpuOperand& right) {
  const GpuMatrix target = make(left.transposed ? left.matrix.columns : left.matrix.rows,
                                right.transposed ? right.matrix.rows : right.matrix.columns);
  multiply(left, right, target);
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
                           const void* tokens, std::int32_t rows) {
  const GpuMatrix target = make(rows, embedding.columns);
  BubblescopeLaunch launched = order(Kernel::kEmbed, target);
  launched.target = target.data;
  launched.inputs[0] = embedding.data;
  launched.inputs[1] = position.data;
  launched.inputs[2] = tokens;
  launched.period = position.rows;
  launch(launched);
  return target;
}

void GpuLayers::embed_grad(const GpuMatrix& grad, const void* tokens,
                           const GpuMatrix& embedding_grad, const GpuMatrix& position_grad) {
  BubblescopeLaunch launched = order(Kernel::kEmbedGrad, grad);
  launched.inputs[0] = grad.data;
  launched.inputs[2] = tokens;
  launched.extra[0] = embedding_grad.data;
  launched.extra[1] = position_grad.data;
  launched.period = position_grad.rows;
  launch(launched);
}

GpuMatrix GpuLayers::norm(const GpuMatrix& input, const GpuMatrix& gain) {
  const GpuMatrix target = make(input.rows, input.columns);
  BubblescopeLaunch launched = order(Kernel::kNorm, input);
  launched.target = target.data;
  launched.inputs[0] = input.data;
  launched.inputs[1] = gain.data;
  launch(launched);
  return target;
}

NormGrad GpuLayers::norm_grad(const NormGradOperands& norm) {
  const GpuMatrix& input = norm.input;
  const GpuMatrix target =
      norm.target.data != nullptr ? norm.target : make(input.rows, input.columns);
  const GpuMatrix inverses = make_floats(input.rows, 1);
  BubblescopeLaunch back = order(Kernel::kNormGrad, input);
  back.target = target.data;
  back.inputs[0] = input.data;
  back.inputs[1] = norm.gain.data;
  back.inputs[2] = norm.grad.data;
  back.inputs[3] = norm.added.data;
  back.extra[0] = inverses.data;
  launch(back);
  const GpuMatrix gain_grad = make_floats(1, input.columns);
  BubblescopeLaunch sum = order(Kernel::kGainGrad, input);
  sum.inputs[0] = input.data;
  sum.inputs[1] = norm.grad.data;
  sum.inputs[2] = inverses.data;
  sum.extra[0] = gain_grad.data;
  launch(sum);
  drop(inverses);
  return {target, gain_grad};
}

void GpuLayers::cross_entropy(const GpuMatrix& logits, const void* targets, float* loss) {
  const GpuMatrix losses = make_floats(1, logits.rows);
  BubblescopeLaunch launched = order(Kernel::kCrossEntropy, logits);
  launched.target = logits.data;
  launched.inputs[2] = targets;
  launched.extra[0] = losses.data;
  launch(launched);
  BubblescopeLaunch mean = order(Kernel::kMean, losses);
  mean.inputs[0] = losses.data;
  mean.extra[0] = loss;
  launch(mean);
  drop(losses);
}

void GpuLayers::cross_entropy_grad(const GpuMatrix& probabilities, const void* targets,
                                   float scale) {
  BubblescopeLaunch launched = order(Kernel::kCrossEntropyGrad, probabilities);
  launched.target = probabilities.data;
  launched.inputs[2] = targets;
  launched.scalars[0] = scale;
  launch(launched);
}

void GpuLayers::add(const GpuMatrix& to, const GpuMatrix& values) {
  BubblescopeLaunch launched = order(Kernel::kAdd, values);
  launched.inputs[0] = values.data;
  launched.extra[0] = to.data;
  launch(launched);
}

}  // namespace bubblescope::exec

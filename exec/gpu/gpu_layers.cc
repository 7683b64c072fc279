// Launches.
#include "exec/gpu/gpu_layers.h"

#include <cmath>

namespace bubblescope {

namespace {

/// Some columns of a head's rows in a matrix, for all heads of one sequence: heads lie side by side
/// in queries, keys, values and outputs, and below each other in weights.
struct HeadFactor {
  const GpuMatrix& matrix;
  std::int64_t offset;  ///< of the first head
  std::int64_t step;    ///< from head to head
  bool transposed = false;
};

BubblescopeFactor factor_of(const HeadFactor& head) {
  const std::int64_t entry = head.matrix.number == kBubblescopeBfloat16 ? 2 : 4;
  return {static_cast<const char*>(head.matrix.data) + head.offset * entry, head.matrix.columns,
          head.step, head.transposed ? 1 : 0};
}

/// Where the parts of one sequence begin.
struct SequenceParts {
  HeadFactor query;
  HeadFactor key;
  HeadFactor value;
  HeadFactor mixed;
  HeadFactor weights;
};

/// What attention reads and makes, or the gradients of that.
struct AttentionMatrices {
  const GpuMatrix& qkv;
  const GpuMatrix& mixed;
  const GpuMatrix& weights;
};

SequenceParts parts_of(const AttentionMatrices& of, const AttentionShape& shape,
                       std::int32_t sequence) {
  const Positions asking = shape.asking();
  const std::int64_t width = std::int64_t{shape.heads} * shape.head_width;
  const std::int64_t square = std::int64_t{asking.count} * asking.end();
  const std::int64_t begin = std::int64_t{sequence} * shape.sequence * 3 * width;
  return {{of.qkv, begin + asking.begin * 3 * width, shape.head_width},
          {of.qkv, begin + width, shape.head_width},
          {of.qkv, begin + 2 * width, shape.head_width},
          {of.mixed, std::int64_t{sequence} * asking.count * width, shape.head_width},
          {of.weights, sequence * shape.heads * square, square}};
}

HeadFactor turned(HeadFactor factor) {
  factor.transposed = !factor.transposed;
  return factor;
}

/// A product for every head of a sequence; rows x inner times inner x columns.
struct HeadProduct {
  HeadFactor left;
  HeadFactor right;
  HeadFactor target;
  std::int32_t rows;
  std::int32_t inner;
  std::int32_t columns;
  float scale = 1;
  bool adds = false;  ///< to the target
};

BubblescopeProduct batched(const HeadProduct& heads, std::int32_t batch) {
  BubblescopeProduct product{};
  product.rows = heads.rows;
  product.columns = heads.columns;
  product.inner = heads.inner;
  product.batch = batch;
  product.left = factor_of(heads.left);
  product.right = factor_of(heads.right);
  const BubblescopeFactor target = factor_of(heads.target);
  product.target = const_cast<void*>(target.data);
  product.source = heads.adds ? target.data : nullptr;
  product.target_stride = target.stride;
  product.target_step = target.step;
  product.scale = heads.scale;
  product.number = heads.left.matrix.number;
  product.target_number = heads.target.matrix.number;
  return product;
}

float scale_of(const AttentionShape& shape) {
  return 1 / std::sqrt(static_cast<float>(shape.head_width));
}

}  // namespace

GpuLayers::GpuLayers(const GpuMachine& machine, std::int32_t rank, BubblescopeNumber number,
                     Told told)
    : gpu_(machine.gpu()), number_(number), pool_(machine.gpu(), machine.place(rank).device) {
  RankPlace place = machine.place(rank);
  if (told == Told::kNothing) place.multiprocessors = 0;  // cuBLASLt takes that for all
  multiplier_ = gpu_.create_multiplier(place);
}

GpuMatrix GpuLayers::make(std::int32_t rows, std::int32_t columns) {
  GpuMatrix matrix{nullptr, rows, columns, number_, true};
  matrix.data = pool_.take(static_cast<std::size_t>(matrix.bytes()));
  return matrix;
}

GpuMatrix GpuLayers::make_floats(std::int32_t rows, std::int32_t columns) {
  GpuMatrix matrix{nullptr, rows, columns, kBubblescopeFloat32, true};
  matrix.data = pool_.take(static_cast<std::size_t>(matrix.bytes()));
  return matrix;
}

void GpuLayers::drop(const GpuMatrix& matrix) {
  if (matrix.pooled) pool_.give(matrix.data, static_cast<std::size_t>(matrix.bytes()));
}

BubblescopeLaunch GpuLayers::order(Kernel kernel, const GpuMatrix& shape) const {
  BubblescopeLaunch launch{};
  launch.kernel = static_cast<std::int32_t>(kernel);
  launch.number = number_;
  launch.rows = shape.rows;
  launch.columns = shape.columns;
  launch.period = 1;
  return launch;
}

void GpuLayers::multiply(const GpuFactor& left, const GpuFactor& right, const GpuMatrix& target,
                         const GpuMatrix& source) {
  BubblescopeProduct product{};
  product.rows = target.rows;
  product.columns = target.columns;
  product.inner = left.transposed ? left.matrix.rows : left.matrix.columns;
  product.batch = 1;
  product.left = {left.matrix.data, left.matrix.columns, 0, left.transposed ? 1 : 0};
  product.right = {right.matrix.data, right.matrix.columns, 0, right.transposed ? 1 : 0};
  product.source = source.data;
  product.target = target.data;
  product.target_stride = target.columns;
  product.scale = 1;
  product.number = left.matrix.number;
  product.target_number = target.number;
  gpu_.multiply(multiplier_, product, stream_);
}

GpuMatrix GpuLayers::product(const GpuFactor& left, const GpuFactor& right) {
  const GpuMatrix target = make(left.transposed ? left.matrix.columns : left.matrix.rows,
                                right.transposed ? right.matrix.rows : right.matrix.columns);
  multiply(left, right, target);
  return target;
}

/// A product for every sequence, all with the same right factor.
void GpuLayers::multiply_into(const GpuMatrix& left, const GpuMatrix& right, const GpuMatrix& whole,
                              const SequenceRows& rows) {
  const GpuMatrix first = rows_of(whole, rows.positions.begin, rows.positions.count);
  BubblescopeProduct product{};
  product.rows = rows.positions.count;
  product.columns = whole.columns;
  product.inner = left.columns;
  product.batch = whole.rows / rows.sequence;
  product.left = {left.data, left.columns, std::int64_t{rows.positions.count} * left.columns, 0};
  product.right = {right.data, right.columns, 0, 0};
  product.target = first.data;
  product.target_stride = whole.columns;
  product.target_step = std::int64_t{rows.sequence} * whole.columns;
  product.scale = 1;
  product.number = left.number;
  product.target_number = whole.number;
  gpu_.multiply(multiplier_, product, stream_);
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

GpuLayers::NormGrad GpuLayers::norm_grad(const NormBack& norm) {
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

GpuMatrix GpuLayers::attention_weights(const GpuMatrix& qkv, const AttentionShape& shape) {
  const auto [begin, count] = shape.asking();
  const GpuMatrix weights = make(shape.batch * shape.heads * count, begin + count);
  for (std::int32_t sequence = 0; sequence < shape.batch; ++sequence) {
    const SequenceParts at = parts_of({qkv, qkv, weights}, shape, sequence);
    gpu_.multiply(multiplier_,
                  batched({at.query, turned(at.key), at.weights, count, shape.head_width,
                           begin + count, scale_of(shape)},
                          shape.heads),
                  stream_);
  }
  BubblescopeLaunch softmax = order(Kernel::kCausalSoftmax, weights);
  softmax.target = weights.data;
  softmax.period = count;
  launch(softmax);
  return weights;
}

GpuMatrix GpuLayers::mix_values(const GpuMatrix& qkv, const GpuMatrix& weights,
                                const AttentionShape& shape) {
  const auto [begin, count] = shape.asking();
  const GpuMatrix mixed = make(shape.batch * count, qkv.columns / 3);
  for (std::int32_t sequence = 0; sequence < shape.batch; ++sequence) {
    const SequenceParts at = parts_of({qkv, mixed, weights}, shape, sequence);
    gpu_.multiply(multiplier_,
                  batched({at.weights, at.value, at.mixed, count, begin + count, shape.head_width},
                          shape.heads),
                  stream_);
  }
  return mixed;
}

void GpuLayers::attention_grad(const AttentionBack& back, const AttentionShape& shape) {
  const GpuMatrix& weights = back.weights;
  const auto [begin, count] = shape.asking();
  const std::int32_t end = begin + count;
  const std::int32_t width = shape.head_width;
  const GpuMatrix logits_grad = make(weights.rows, weights.columns);
  const auto multiply_heads = [&](const HeadProduct& product) {
    gpu_.multiply(multiplier_, batched(product, shape.heads), stream_);
  };
  for (std::int32_t sequence = 0; sequence < shape.batch; ++sequence) {
    const SequenceParts from = parts_of({back.qkv, back.mixed_grad, weights}, shape, sequence);
    const SequenceParts to = parts_of({back.target, back.mixed_grad, logits_grad}, shape, sequence);
    multiply_heads({turned(from.weights), from.mixed, to.value, end, count, width, 1, back.adds});
    multiply_heads({from.mixed, turned(from.value), to.weights, count, width, end});
  }
  BubblescopeLaunch softmax = order(Kernel::kSoftmaxGrad, weights);
  softmax.target = logits_grad.data;
  softmax.inputs[0] = weights.data;
  launch(softmax);
  const float scale = scale_of(shape);
  for (std::int32_t sequence = 0; sequence < shape.batch; ++sequence) {
    const SequenceParts from = parts_of({back.qkv, back.mixed_grad, logits_grad}, shape, sequence);
    const SequenceParts to = parts_of({back.target, back.mixed_grad, logits_grad}, shape, sequence);
    multiply_heads({from.weights, from.key, to.query, count, end, width, scale, back.adds});
    multiply_heads({turned(from.weights), from.query, to.key, end, count, width, scale, back.adds});
  }
  drop(logits_grad);
}

GpuMatrix GpuLayers::gelu(const GpuMatrix& input) {
  const GpuMatrix target = make(input.rows, input.columns);
  BubblescopeLaunch launched = order(Kernel::kGelu, input);
  launched.target = target.data;
  launched.inputs[0] = input.data;
  launch(launched);
  return target;
}

void GpuLayers::gelu_grad(const GpuMatrix& input, const GpuMatrix& grad) {
  BubblescopeLaunch launched = order(Kernel::kGeluGrad, input);
  launched.target = grad.data;
  launched.inputs[0] = input.data;
  launched.inputs[1] = grad.data;
  launch(launched);
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

}  // namespace bubblescope

// Attention on a rank's stream: as batched GEMMs and a softmax, or as tiled kernels.
#include <cmath>

#include "exec/gpu/host/gpu_layers.h"

namespace bubblescope {

namespace {

/// The columns of one head in all heads' rows of a sequence. Heads lie side by side in queries,
/// keys, values and outputs, and below each other in the weights.
struct HeadFactor {
  const GpuMatrix& matrix;
  std::int64_t offset;  ///< of the first head
  std::int64_t step;    ///< from head to head
  bool transposed = false;
};

BubblescopeFactor factor_of(const HeadFactor& head) {
  const auto first = static_cast<std::size_t>(head.offset);
  return {piece_of(head.matrix, first, 0).data, head.matrix.columns, head.step,
          head.transposed ? 1 : 0};
}

/// The first entry of a sequence in each matrix.
struct SequenceParts {
  HeadFactor query;
  HeadFactor key;
  HeadFactor value;
  HeadFactor mixed;
  HeadFactor weights;
};

/// The matrices of attention, or their gradients.
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

/// One GEMM per head of a sequence: (rows x inner) * (inner x columns).
struct HeadProduct {
  HeadFactor left;
  HeadFactor right;
  HeadFactor target;
  std::int32_t rows;
  std::int32_t inner;
  std::int32_t columns;
  float scale = 1;
  bool adds = false;  ///< accumulates into the target
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

Attended GpuLayers::attend(const GpuMatrix& qkv, const AttentionShape& shape) {
  if (attention_ == Attention::kFlash) return attend_by_tiles(qkv, shape);
  const GpuMatrix weights = attention_weights(qkv, shape);
  return {weights, mix_values(qkv, weights, shape)};
}

void GpuLayers::attention_grad(const AttentionBack& back, const AttentionShape& shape) {
  if (attention_ == Attention::kFlash)
    grad_by_tiles(back, shape);
  else
    grad_by_products(back, shape);
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

void GpuLayers::grad_by_products(const AttentionBack& back, const AttentionShape& shape) {
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

/// The rows and columns of the launch are those of the attention output.
BubblescopeLaunch GpuLayers::order_tiles(Kernel kernel, const AttentionShape& shape) const {
  const auto [begin, count] = shape.asking();
  const std::int32_t width = shape.heads * shape.head_width;
  BubblescopeLaunch launched = order(kernel, {nullptr, shape.batch * count, width, number_});
  launched.attention = {shape.batch, shape.sequence,   begin,          count,
                        shape.heads, shape.head_width, scale_of(shape)};
  return launched;
}

Attended GpuLayers::attend_by_tiles(const GpuMatrix& qkv, const AttentionShape& shape) {
  const std::int32_t rows = shape.batch * shape.asking().count;
  const GpuMatrix logs = make_floats(rows, shape.heads);
  const GpuMatrix mixed = make(rows, shape.heads * shape.head_width);
  BubblescopeLaunch launched = order_tiles(Kernel::kAttention, shape);
  launched.target = mixed.data;
  launched.inputs[0] = qkv.data;
  launched.extra[0] = logs.data;
  launch(launched);
  return {logs, mixed};
}

void GpuLayers::grad_by_tiles(const AttentionBack& back, const AttentionShape& shape) {
  if (!back.adds) clear(back.target);
  const GpuMatrix dots = make_floats(shape.batch * shape.asking().count, shape.heads);
  for (const Kernel kernel : {Kernel::kQueryGrad, Kernel::kKeyGrad}) {
    BubblescopeLaunch launched = order_tiles(kernel, shape);
    launched.target = back.target.data;
    launched.inputs[0] = back.qkv.data;
    launched.inputs[1] = back.mixed.data;
    launched.inputs[2] = back.mixed_grad.data;
    launched.inputs[3] = back.weights.data;
    launched.extra[0] = dots.data;
    launch(launched);
  }
  drop(dots);
}

}  // namespace bubblescope

// Enqueues one GEMM per head of a sequence, or a kernel for all tiles.
#include "exec/gpu/host/gpu_attention.h"

#include <cstddef>
#include <cstdint>

namespace bubblescope::exec {

namespace {

/// The columns of one head in all heads' rows of a sequence. Heads lie side by side in queries,
/// keys, values and outputs, and below each other in the weights.
struct HeadOperand {
  const GpuMatrix& matrix;
  std::int64_t offset;  ///< of the first head
  std::int64_t step;    ///< from head to head
  bool transposed = false;
};

BubblescopeOperand operand_of(const HeadOperand& head) {
  const auto first = static_cast<std::size_t>(head.offset);
  return {buffer_of(head.matrix, first, 0).data, head.matrix.columns, head.step,
          head.transposed ? 1 : 0};
}

/// The first entry of a sequence in each matrix.
struct SequenceParts {
  HeadOperand query;
  HeadOperand key;
  HeadOperand value;
  HeadOperand mixed;
  HeadOperand weights;
};

/// The matrices of attention, or their gradients.
struct AttentionMatrices {
  const GpuMatrix& qkv;
  const GpuMatrix& mixed;
  const GpuMatrix& weights;
};

SequenceParts parts_of(const AttentionMatrices& matrices, const AttentionShape& shape,
                       std::int32_t sequence) {
  const Positions query_positions = shape.query_positions();
  const std::int64_t width = std::int64_t{shape.heads} * shape.head_width;
  const std::int64_t square = std::int64_t{query_positions.count} * query_positions.end();
  const std::int64_t begin = std::int64_t{sequence} * shape.sequence * 3 * width;
  return {
      {matrices.qkv, begin + query_positions.begin * 3 * width, shape.head_width},
      {matrices.qkv, begin + width, shape.head_width},
      {matrices.qkv, begin + 2 * width, shape.head_width},
      {matrices.mixed, std::int64_t{sequence} * query_positions.count * width, shape.head_width},
      {matrices.weights, sequence * shape.heads * square, square}};
}

HeadOperand turned(HeadOperand factor) {
  factor.transposed = !factor.transposed;
  return factor;
}

/// One GEMM per head of a sequence: (rows x inner) * (inner x columns).
struct HeadGemm {
  HeadOperand left;
  HeadOperand right;
  HeadOperand target;
  std::int32_t rows;
  std::int32_t k;
  std::int32_t columns;
  float scale = 1;
  bool adds = false;  ///< accumulates into the target
};

BubblescopeGemm batched(const HeadGemm& heads, std::int32_t batch) {
  BubblescopeGemm gemm{};
  gemm.rows = heads.rows;
  gemm.columns = heads.columns;
  gemm.k = heads.k;
  gemm.batch = batch;
  gemm.left = operand_of(heads.left);
  gemm.right = operand_of(heads.right);
  const BubblescopeOperand target = operand_of(heads.target);
  gemm.target = const_cast<void*>(target.data);
  gemm.source = heads.adds ? target.data : nullptr;
  gemm.target_stride = target.stride;
  gemm.target_step = target.step;
  gemm.scale = heads.scale;
  gemm.dtype = heads.left.matrix.dtype;
  gemm.target_dtype = heads.target.matrix.dtype;
  return gemm;
}

AttentionGrid grid_of(const AttentionShape& shape) {
  const auto [begin, count] = shape.query_positions();
  return {shape.batch, shape.sequence, begin, count, shape.heads, shape.head_width, shape.scale()};
}

}  // namespace

AttentionOutput GpuAttention::attend(const GpuMatrix& qkv, const AttentionShape& shape) {
  if (kind_ == Attention::kFlash) return attend_by_tiles(qkv, shape);
  const GpuMatrix weights = make_weights(qkv, shape);
  return {weights, mix_values(qkv, weights, shape)};
}

void GpuAttention::pull_back(const AttentionGradOperands& back, const AttentionShape& shape) {
  if (kind_ == Attention::kFlash)
    grad_by_tiles(back, shape);
  else
    grad_by_gemms(back, shape);
}

GpuMatrix GpuAttention::make_weights(const GpuMatrix& qkv, const AttentionShape& shape) {
  const auto [begin, count] = shape.query_positions();
  const GpuMatrix weights = stream_.make(shape.batch * shape.heads * count, begin + count);
  for (std::int32_t sequence = 0; sequence < shape.batch; ++sequence) {
    const SequenceParts at = parts_of({qkv, qkv, weights}, shape, sequence);
    stream_.multiply(batched({at.query, turned(at.key), at.weights, count, shape.head_width,
                              begin + count, shape.scale()},
                             shape.heads));
  }
  stream_.launch(weights, CausalSoftmaxArguments{weights.data, count});
  return weights;
}

GpuMatrix GpuAttention::mix_values(const GpuMatrix& qkv, const GpuMatrix& weights,
                                   const AttentionShape& shape) {
  const auto [begin, count] = shape.query_positions();
  const GpuMatrix mixed = stream_.make(shape.batch * count, qkv.columns / 3);
  for (std::int32_t sequence = 0; sequence < shape.batch; ++sequence) {
    const SequenceParts at = parts_of({qkv, mixed, weights}, shape, sequence);
    stream_.multiply(batched(
        {at.weights, at.value, at.mixed, count, begin + count, shape.head_width}, shape.heads));
  }
  return mixed;
}

void GpuAttention::grad_by_gemms(const AttentionGradOperands& back, const AttentionShape& shape) {
  const GpuMatrix& weights = back.weights;
  const auto [begin, count] = shape.query_positions();
  const std::int32_t end = begin + count;
  const std::int32_t width = shape.head_width;
  const GpuMatrix logits_grad = stream_.make(weights.rows, weights.columns);
  const auto multiply_heads = [&](const HeadGemm& gemm) {
    stream_.multiply(batched(gemm, shape.heads));
  };
  for (std::int32_t sequence = 0; sequence < shape.batch; ++sequence) {
    const SequenceParts from = parts_of({back.qkv, back.mixed_grad, weights}, shape, sequence);
    const SequenceParts to = parts_of({back.target, back.mixed_grad, logits_grad}, shape, sequence);
    multiply_heads({turned(from.weights), from.mixed, to.value, end, count, width, 1, back.adds});
    multiply_heads({from.mixed, turned(from.value), to.weights, count, width, end});
  }
  stream_.launch(weights, SoftmaxGradArguments{logits_grad.data, weights.data});
  const float scale = shape.scale();
  for (std::int32_t sequence = 0; sequence < shape.batch; ++sequence) {
    const SequenceParts from = parts_of({back.qkv, back.mixed_grad, logits_grad}, shape, sequence);
    const SequenceParts to = parts_of({back.target, back.mixed_grad, logits_grad}, shape, sequence);
    multiply_heads({from.weights, from.key, to.query, count, end, width, scale, back.adds});
    multiply_heads({turned(from.weights), from.query, to.key, end, count, width, scale, back.adds});
  }
  stream_.drop(logits_grad);
}

AttentionOutput GpuAttention::attend_by_tiles(const GpuMatrix& qkv, const AttentionShape& shape) {
  const std::int32_t rows = shape.batch * shape.query_positions().count;
  const GpuMatrix logs = stream_.make_floats(rows, shape.heads);
  const GpuMatrix mixed = stream_.make(rows, shape.heads * shape.head_width);
  stream_.launch(mixed, AttentionArguments{mixed.data, qkv.data, logs.floats(), grid_of(shape)});
  return {logs, mixed};
}

void GpuAttention::grad_by_tiles(const AttentionGradOperands& back, const AttentionShape& shape) {
  if (!back.adds) stream_.clear(back.target);
  const GpuMatrix dots =
      stream_.make_floats(shape.batch * shape.query_positions().count, shape.heads);
  const QueryGradArguments arguments{back.target.data,     back.qkv.data,         back.mixed.data,
                                     back.mixed_grad.data, back.weights.floats(), dots.floats(),
                                     grid_of(shape)};
  stream_.launch(back.mixed, arguments);
  stream_.launch(back.mixed, KeyGradArguments{arguments});
  stream_.drop(dots);
}

}  // namespace bubblescope::exec

// Computes layers and their gradients.
#include "exec/training/layers.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace bubblescope::exec {

namespace {

constexpr float kSmall = 1e-5F;

float inverse_root_mean_square(const float* row, std::int32_t columns) {
  float sum = 0;
  for (std::int32_t column = 0; column < columns; ++column) sum += row[column] * row[column];
  return 1 / std::sqrt(sum / static_cast<float>(columns) + kSmall);
}

/// Replaces the first `count` entries of a row by their softmax and the others by zero.
void softmax_row(float* row, std::int32_t count, std::int32_t columns) {
  const float highest = *std::max_element(row, row + count);
  float sum = 0;
  for (std::int32_t column = 0; column < count; ++column)
    sum += row[column] = std::exp(row[column] - highest);
  for (std::int32_t column = 0; column < count; ++column) row[column] /= sum;
  std::fill(row + count, row + columns, 0.0F);
}

/// The blocks of one head of one sequence in the attention matrices.
struct HeadBlocks {
  Block query;
  Block key;
  Block value;
  Block mixed;
  Block weights;
};

HeadBlocks blocks_of(const AttentionShape& shape, std::int32_t sequence, std::int32_t head) {
  const Positions query_positions = shape.query_positions();
  const std::int32_t row = sequence * shape.sequence;
  const auto columns = [&](std::int32_t first_row, std::int32_t rows, std::int32_t third) {
    const std::int32_t column = (third * shape.heads + head) * shape.head_width;
    return Block{first_row, rows, column, shape.head_width};
  };
  const std::int32_t weights_row = (sequence * shape.heads + head) * query_positions.count;
  return {columns(row + query_positions.begin, query_positions.count, 0),
          columns(row, query_positions.end(), 1),
          columns(row, query_positions.end(), 2),
          columns(sequence * query_positions.count, query_positions.count, 0),
          {weights_row, query_positions.count, 0, query_positions.end()}};
}

/// Replaces the gradient of the softmax by the gradient of its input.
void softmax_grad(Matrix& grad, const Matrix& weights, std::int32_t first_row) {
  for (std::int32_t row = 0; row < grad.rows; ++row) {
    float* const to = grad.row(row);
    const float* const weight = weights.row(first_row + row);
    float sum = 0;
    for (std::int32_t column = 0; column < grad.columns; ++column)
      sum += to[column] * weight[column];
    for (std::int32_t column = 0; column < grad.columns; ++column)
      to[column] = weight[column] * (to[column] - sum);
  }
}

}  // namespace

Matrix normalize(const Matrix& input) {
  Matrix result = input;
  for (std::int32_t row = 0; row < input.rows; ++row) {
    const float inverse = inverse_root_mean_square(input.row(row), input.columns);
    float* const to = result.row(row);
    for (std::int32_t column = 0; column < input.columns; ++column) to[column] *= inverse;
  }
  return result;
}

Matrix apply_gain(const Matrix& normalized, const Matrix& gain) {
  Matrix result = normalized;
  for (std::int32_t row = 0; row < result.rows; ++row) {
    float* const to = result.row(row);
    for (std::int32_t column = 0; column < result.columns; ++column)
      to[column] *= gain.values[static_cast<std::size_t>(column)];
  }
  return result;
}

/// With n = x * r and g = grad * gain: dx = r * (g - n * mean(g * n)).
Matrix norm_grad(const Matrix& input, const Matrix& gain, const Matrix& grad) {
  Matrix result = apply_gain(grad, gain);
  for (std::int32_t row = 0; row < input.rows; ++row) {
    const float* const x = input.row(row);
    float* const to = result.row(row);
    const float inverse = inverse_root_mean_square(x, input.columns);
    float mean = 0;
    for (std::int32_t column = 0; column < input.columns; ++column)
      mean += to[column] * x[column] * inverse;
    mean /= static_cast<float>(input.columns);
    for (std::int32_t column = 0; column < input.columns; ++column)
      to[column] = inverse * (to[column] - x[column] * inverse * mean);
  }
  return result;
}

Matrix scale_grad(const Matrix& input, const Matrix& grad) {
  Matrix result(1, input.columns);
  for (std::int32_t row = 0; row < input.rows; ++row)
    for (std::int32_t column = 0; column < input.columns; ++column)
      result.row(0)[column] += input.row(row)[column] * grad.row(row)[column];
  return result;
}

Matrix gain_grad(const Matrix& input, const Matrix& grad) {
  return scale_grad(normalize(input), grad);
}

Matrix attention_weights(const Matrix& qkv, const AttentionShape& shape) {
  const Positions query_positions = shape.query_positions();
  Matrix weights(shape.batch * shape.heads * query_positions.count, query_positions.end());
  for (std::int32_t sequence = 0; sequence < shape.batch; ++sequence)
    for (std::int32_t head = 0; head < shape.heads; ++head) {
      const HeadBlocks blocks = blocks_of(shape, sequence, head);
      multiply(part(qkv, blocks.query), transposed(part(qkv, blocks.key)),
               onto(weights, blocks.weights), {shape.scale()});
    }
  weights = stored(std::move(weights), shape.precision);
  for (std::int32_t row = 0; row < weights.rows; ++row)
    softmax_row(weights.row(row), query_positions.begin + row % query_positions.count + 1,
                weights.columns);
  return stored(std::move(weights), shape.precision);
}

Matrix mix_values(const Matrix& qkv, const Matrix& weights, const AttentionShape& shape) {
  Matrix mixed(shape.batch * shape.query_positions().count, qkv.columns / 3);
  for (std::int32_t sequence = 0; sequence < shape.batch; ++sequence)
    for (std::int32_t head = 0; head < shape.heads; ++head) {
      const HeadBlocks blocks = blocks_of(shape, sequence, head);
      multiply(part(weights, blocks.weights), part(qkv, blocks.value), onto(mixed, blocks.mixed));
    }
  return stored(std::move(mixed), shape.precision);
}

Matrix attention_grad(const Matrix& qkv, const Matrix& weights, const Matrix& mixed_grad,
                      const AttentionShape& shape) {
  Matrix grad(qkv.rows, qkv.columns);
  for (std::int32_t sequence = 0; sequence < shape.batch; ++sequence)
    for (std::int32_t head = 0; head < shape.heads; ++head) {
      const HeadBlocks blocks = blocks_of(shape, sequence, head);
      const Operand out_grad = part(mixed_grad, blocks.mixed);
      multiply(transposed(part(weights, blocks.weights)), out_grad, onto(grad, blocks.value));
      Matrix logits_grad =
          stored(product(out_grad, transposed(part(qkv, blocks.value))), shape.precision);
      softmax_grad(logits_grad, weights, blocks.weights.row);
      logits_grad = stored(std::move(logits_grad), shape.precision);
      const GemmOptions scaled{shape.scale()};
      multiply(whole(logits_grad), part(qkv, blocks.key), onto(grad, blocks.query), scaled);
      multiply(transposed(whole(logits_grad)), part(qkv, blocks.query), onto(grad, blocks.key),
               scaled);
    }
  return stored(std::move(grad), shape.precision);
}

namespace {

constexpr float kBendSlope = 0.7978845608F;  // sqrt(2 / pi)
constexpr float kBendCubic = 0.044715F;

}  // namespace

Matrix gelu(const Matrix& input) {
  Matrix result = input;
  for (float& x : result.values)
    x = 0.5F * x * (1 + std::tanh(kBendSlope * (x + kBendCubic * x * x * x)));
  return result;
}

Matrix gelu_grad(const Matrix& input, const Matrix& grad) {
  Matrix result = grad;
  for (std::size_t at = 0; at < result.values.size(); ++at) {
    const float x = input.values[at];
    const float bent = std::tanh(kBendSlope * (x + kBendCubic * x * x * x));
    const float slope = kBendSlope * (1 + 3 * kBendCubic * x * x);
    result.values[at] *= 0.5F * (1 + bent) + 0.5F * x * (1 - bent * bent) * slope;
  }
  return result;
}

Matrix softmax(const Matrix& logits) {
  Matrix result = logits;
  for (std::int32_t row = 0; row < result.rows; ++row)
    softmax_row(result.row(row), result.columns, result.columns);
  return result;
}

double cross_entropy(const Matrix& probabilities, const std::vector<std::int32_t>& targets) {
  double sum = 0;
  for (std::int32_t row = 0; row < probabilities.rows; ++row)
    sum -= std::log(double{probabilities.row(row)[targets[static_cast<std::size_t>(row)]]});
  return sum / probabilities.rows;
}

Matrix cross_entropy_grad(const Matrix& probabilities, const std::vector<std::int32_t>& targets,
                          float scale) {
  Matrix grad = probabilities;
  for (std::int32_t row = 0; row < grad.rows; ++row)
    grad.row(row)[targets[static_cast<std::size_t>(row)]] -= 1;
  for (float& value : grad.values) value *= scale / static_cast<float>(grad.rows);
  return grad;
}

}  // namespace bubblescope::exec

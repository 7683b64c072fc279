// Computes whole matrices; every launch writes its part.
#include "tests/support/fake_attention.h"

#include <algorithm>
#include <cmath>

#include "exec/gpu/kernels.h"
#include "exec/training/layers.h"

namespace bubblescope::tests {

namespace {

exec::AttentionShape shape_of(const BubblescopeAttention& grid) {
  return {grid.batch, grid.sequence, grid.heads, grid.width,
          exec::Positions{grid.begin, grid.count}};
}

exec::Matrix read(const void* data, std::int32_t rows, std::int32_t columns) {
  exec::Matrix matrix(rows, columns);
  std::copy_n(static_cast<const float*>(data), matrix.values.size(), matrix.values.begin());
  return matrix;
}

/// The weight of a row's own position is exp(score - log).
float log_of_row(const BubblescopeAttention& grid, const exec::Matrix& qkv,
                 const exec::Matrix& weights, std::int32_t row) {
  const std::int32_t query = row % grid.count;
  const std::int32_t head = row / grid.count % grid.heads;
  const std::int32_t sequence = row / grid.count / grid.heads;
  const float* const of = qkv.row(sequence * grid.sequence + grid.begin + query);
  const float* const key = of + (grid.heads + head) * grid.width;
  float score = 0;
  for (std::int32_t at = 0; at < grid.width; ++at)
    score += of[head * grid.width + at] * key[at] * grid.scale;
  return score - std::log(weights.row(row)[grid.begin + query]);
}

/// The queries, keys and values of whole sequences.
exec::Matrix read_qkv(const void* qkv, const BubblescopeAttention& grid) {
  return read(qkv, grid.batch * grid.sequence, 3 * grid.heads * grid.width);
}

exec::Matrix whole_gradient(const exec::QueryGradArguments& arguments) {
  const BubblescopeAttention& grid = arguments.grid;
  const exec::Matrix qkv = read_qkv(arguments.qkv, grid);
  const exec::Matrix mixed_grad =
      read(arguments.mixed_grad, grid.batch * grid.count, grid.heads * grid.width);
  const exec::AttentionShape shape = shape_of(grid);
  return exec::attention_grad(qkv, exec::attention_weights(qkv, shape), mixed_grad, shape);
}

/// Adds the queries' third of the gradient, or the other two.
void add_gradient(void* to, const exec::Matrix& grad, bool of_queries) {
  auto* const target = static_cast<float*>(to);
  const std::int32_t third = grad.columns / 3;
  for (std::int32_t row = 0; row < grad.rows; ++row)
    for (std::int32_t column = 0; column < grad.columns; ++column)
      if ((column < third) == of_queries)
        target[std::int64_t{row} * grad.columns + column] += grad.row(row)[column];
}

}  // namespace

void attend_on_host(const exec::AttentionArguments& arguments) {
  const BubblescopeAttention& grid = arguments.grid;
  const exec::Matrix qkv = read_qkv(arguments.qkv, grid);
  const exec::Matrix weights = exec::attention_weights(qkv, shape_of(grid));
  const exec::Matrix mixed = exec::mix_values(qkv, weights, shape_of(grid));
  std::copy(mixed.values.begin(), mixed.values.end(), static_cast<float*>(arguments.mixed));
  for (std::int32_t row = 0; row < weights.rows; ++row) {
    const std::int32_t sequence = row / grid.count / grid.heads;
    const std::int32_t head = row / grid.count % grid.heads;
    arguments.logs[(sequence * grid.count + row % grid.count) * grid.heads + head] =
        log_of_row(grid, qkv, weights, row);
  }
}

void add_query_grad_on_host(const exec::QueryGradArguments& arguments) {
  add_gradient(arguments.qkv_grad, whole_gradient(arguments), true);
}

void add_key_grad_on_host(const exec::KeyGradArguments& arguments) {
  add_gradient(arguments.qkv_grad, whole_gradient(arguments), false);
}

}  // namespace bubblescope::tests

// Compares tiled attention, whose kernels run thread by thread on the host, with the GEMMs and
// softmax of exec/training.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "exec/training/layers.h"
#include "tests/support/emulated_block.h"
#include "tests/support/test_matrix.h"
// The kernels need the CUDA emulation above.
#include "exec/gpu/device/attention_kernel.cuh"
#include "exec/gpu/device/key_grad_kernel.cuh"
#include "exec/gpu/device/query_grad_kernel.cuh"

namespace bubblescope::tests {
namespace {

constexpr unsigned int kThreads = exec::kAttentionWarps * exec::kWarp;

exec::AttentionGrid grid_of(const exec::AttentionShape& shape) {
  const exec::Positions query_positions = shape.query_positions();
  return {shape.batch,
          shape.sequence,
          query_positions.begin,
          query_positions.count,
          shape.heads,
          shape.head_width,
          1 / std::sqrt(static_cast<float>(shape.head_width))};
}

unsigned int blocks_of(const exec::AttentionGrid& grid, std::int32_t rows) {
  return static_cast<unsigned int>(exec::attention_blocks(grid, rows));
}

struct Made {
  exec::Matrix mixed;
  exec::Matrix grad;
};

/// Tests forward and backward in one precision; the gradient is accumulated.
template <class Value>
struct OnDevice {
  std::vector<Value> qkv, mixed, mixed_grad, grad;
  exec::Matrix logs, dots;
};

template <class Value>
std::vector<Value> stored(const exec::Matrix& matrix) {
  std::vector<Value> values;
  for (const float value : matrix.values) values.push_back(exec::from_float<Value>(value));
  return values;
}

template <class Value>
exec::Matrix loaded(const std::vector<Value>& values, std::int32_t rows, std::int32_t columns) {
  exec::Matrix matrix(rows, columns);
  std::transform(values.begin(), values.end(), matrix.values.begin(),
                 [](Value value) { return exec::to_float(value); });
  return matrix;
}

template <class Value>
Made run(const exec::AttentionShape& shape, FiberOrder order, const exec::Matrix& qkv,
         const exec::Matrix& mixed_grad, const exec::Matrix& grad) {
  const exec::AttentionGrid grid = grid_of(shape);
  const std::int32_t rows = grid.batch * grid.count;
  OnDevice<Value> on{
      stored<Value>(qkv),          stored<Value>(unwritten(rows, grid.heads * grid.width)),
      stored<Value>(mixed_grad),   stored<Value>(grad),
      unwritten(rows, grid.heads), unwritten(rows, grid.heads)};
  emulate(blocks_of(grid, grid.count), kThreads, order, [&] {
    exec::attention_kernel(on.mixed.data(), on.logs.values.data(), on.qkv.data(), grid);
  });
  const exec::AttentionBackward<Value> of{on.qkv.data(), on.mixed.data(), on.mixed_grad.data(),
                                          on.logs.values.data()};
  emulate(blocks_of(grid, grid.count), kThreads, order,
          [&] { exec::query_grad_kernel(on.grad.data(), on.dots.values.data(), of, grid); });
  emulate(blocks_of(grid, grid.begin + grid.count), kThreads, order,
          [&] { exec::key_grad_kernel(on.grad.data(), on.dots.values.data(), of, grid); });
  return {loaded(on.mixed, rows, grid.heads * grid.width), loaded(on.grad, qkv.rows, qkv.columns)};
}

template <class Value>
void expect_equal_to_the_host(const exec::AttentionShape& shape, float tolerance) {
  const exec::Matrix qkv =
      draw_matrix(shape.batch * shape.sequence, 3 * shape.heads * shape.head_width, 1);
  const exec::Matrix mixed_grad =
      draw_matrix(shape.batch * shape.query_positions().count, shape.heads * shape.head_width, 2);
  const exec::Matrix before = draw_matrix(qkv.rows, qkv.columns, 3);
  const exec::Matrix weights = exec::attention_weights(qkv, shape);
  const exec::Matrix mixed = exec::mix_values(qkv, weights, shape);
  exec::Matrix grad = exec::attention_grad(qkv, weights, mixed_grad, shape);
  exec::add(grad, before);
  for (const FiberOrder order : {FiberOrder::kUp, FiberOrder::kDown}) {
    const Made made = run<Value>(shape, order, qkv, mixed_grad, before);
    expect_near(made.mixed, mixed, tolerance);
    expect_near(made.grad, grad, tolerance);
  }
}

// There are more positions than rows of a tile and than warps of a block, and widths that are not
// those of a warp.
const exec::AttentionShape kShapes[] = {{1, 1, 1, 8, {}},           {2, 37, 3, 20, {}},
                                        {1, 70, 2, 64, {}},         {2, 45, 2, 40, {{13, 20}}},
                                        {1, 66, 1, 128, {{64, 2}}}, {1, 40, 2, 33, {{0, 9}}}};

TEST(GpuAttention, EqualsTheHostsInFloat32) {
  for (const exec::AttentionShape& shape : kShapes) {
    SCOPED_TRACE(shape.sequence);
    expect_equal_to_the_host<float>(shape, 4e-6F);
  }
}

// All scores are equal: weights are 1 / (position + 1), so that the values 0, 1, 2, ... mix to half
// of the position; and 1000 in every query changes no softmax, but would overflow without the
// running largest score.
TEST(GpuAttention, LargeScoresDoNotOverflow) {
  const exec::AttentionShape shape{1, 40, 1, 32, {}};
  exec::Matrix qkv(40, 96);
  for (std::int32_t row = 0; row < 40; ++row)
    for (std::int32_t column = 0; column < 96; ++column)
      qkv.row(row)[column] = column < 64 ? 1000.0F : static_cast<float>(row);
  const exec::Matrix none(40, 32);
  const Made made = run<float>(shape, FiberOrder::kUp, qkv, none, exec::Matrix(40, 96));
  for (std::int32_t row = 0; row < 40; ++row)
    EXPECT_NEAR(made.mixed.row(row)[0], 0.5F * static_cast<float>(row), 1e-5F * 40);
}

}  // namespace
}  // namespace bubblescope::tests

// Compares attention on tensor cores, whose kernels run thread by thread on the host with fragments
// as PTX lays them out, with the GEMMs and softmax of exec/training.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "exec/training/layers.h"
#include "exec/training/precision.h"
#include "tests/support/emulated_block.h"
#include "tests/support/test_matrix.h"
// The kernels need the CUDA emulation above.
#include "exec/gpu/device/fragment_attention_kernel.cuh"
#include "exec/gpu/device/fragment_key_grad_kernel.cuh"
#include "exec/gpu/device/fragment_query_grad_kernel.cuh"

namespace bubblescope::tests {
namespace {

using exec::Bfloat16;

constexpr FiberOrder kOrders[] = {FiberOrder::kUp, FiberOrder::kDown};

exec::AttentionGrid grid_of(const exec::AttentionShape& shape) {
  const exec::Positions positions = shape.query_positions();
  return {shape.batch, shape.sequence,   positions.begin, positions.count,
          shape.heads, shape.head_width, shape.scale()};
}

/// Numbers on the device, 16 bytes aligned or not.
class Halves {
 public:
  Halves(const exec::Matrix& matrix, std::size_t offset)
      : offset_(offset), values_(matrix.values.size() + offset + 8) {
    for (std::size_t at = 0; at < matrix.values.size(); ++at)
      data()[at] = exec::from_float<Bfloat16>(matrix.values[at]);
  }
  Bfloat16* data() {
    auto address = reinterpret_cast<std::uintptr_t>(values_.data());
    return values_.data() + (16 - address % 16) % 16 / sizeof(Bfloat16) + offset_;
  }
  exec::Matrix load(std::int32_t rows, std::int32_t columns) {
    exec::Matrix matrix(rows, columns);
    for (std::size_t at = 0; at < matrix.values.size(); ++at)
      matrix.values[at] = exec::to_float(data()[at]);
    return matrix;
  }

 private:
  std::size_t offset_;
  std::vector<Bfloat16> values_;
};

struct Made {
  exec::Matrix mixed, logs, grad;
};

/// Runs the forward and the backward with these shapes of blocks.
template <class Forward, class QueryGrad, class KeyGrad>
Made run(const exec::AttentionShape& shape, FiberOrder order, std::size_t offset,
         const exec::Matrix& qkv, const exec::Matrix& mixed_grad, const exec::Matrix& before) {
  const exec::AttentionGrid grid = grid_of(shape);
  const std::int32_t rows = grid.batch * grid.count;
  const std::int32_t columns = grid.heads * grid.width;
  Halves on_qkv(qkv, offset), on_mixed(unwritten(rows, columns), offset),
      on_mixed_grad(mixed_grad, offset), on_grad(before, offset);
  exec::Matrix logs = unwritten(rows, grid.heads);
  exec::Matrix dots = unwritten(rows, grid.heads);
  const auto launch = [&](auto blocks, std::int32_t count, const auto& kernel) {
    const std::int64_t needed = exec::fragment_blocks(grid, count, decltype(blocks)::kBlockRows);
    emulate(static_cast<unsigned int>(needed), decltype(blocks)::kThreads, order, kernel);
  };
  launch(Forward(), grid.count, [&] {
    exec::fragment_attention_kernel<Forward>(on_mixed.data(), logs.values.data(), on_qkv.data(),
                                             grid);
  });
  const exec::AttentionBackward<Bfloat16> from{on_qkv.data(), on_mixed.data(), on_mixed_grad.data(),
                                               logs.values.data()};
  launch(QueryGrad(), grid.count, [&] {
    exec::fragment_query_grad_kernel<QueryGrad>(on_grad.data(), dots.values.data(), from, grid);
  });
  launch(KeyGrad(), grid.begin + grid.count, [&] {
    exec::fragment_key_grad_kernel<KeyGrad>(on_grad.data(), dots.values.data(), from, grid);
  });
  return {on_mixed.load(rows, columns), logs, on_grad.load(qkv.rows, qkv.columns)};
}

template <int kWidth>
Made run(const exec::AttentionShape& shape, FiberOrder order, std::size_t offset,
         const exec::Matrix& qkv, const exec::Matrix& mixed_grad, const exec::Matrix& before) {
  return run<exec::ForwardShape<kWidth>, exec::QueryGradShape<kWidth>, exec::KeyGradShape<kWidth>>(
      shape, order, offset, qkv, mixed_grad, before);
}

Made run_narrowest(const exec::AttentionShape& shape, FiberOrder order, std::size_t offset,
                   const exec::Matrix& qkv, const exec::Matrix& mixed_grad,
                   const exec::Matrix& before) {
  if (shape.head_width <= 32) return run<32>(shape, order, offset, qkv, mixed_grad, before);
  if (shape.head_width <= 64) return run<64>(shape, order, offset, qkv, mixed_grad, before);
  return run<128>(shape, order, offset, qkv, mixed_grad, before);
}

exec::Matrix draw_halves(std::int32_t rows, std::int32_t columns, std::uint64_t seed) {
  return exec::stored(draw_matrix(rows, columns, seed), exec::Precision::kBfloat16);
}

/// The largest difference, and the root of the mean square, both relative to the expected root of
/// the mean square.
struct Errors {
  double largest = 0;
  double mean = 0;
};

Errors compare(const exec::Matrix& made, const exec::Matrix& expected) {
  Errors errors;
  double squares = 0, differences = 0;
  for (std::size_t at = 0; at < expected.values.size(); ++at) {
    const double difference = std::abs(double{made.values[at]} - double{expected.values[at]});
    if (!(difference < 1e9)) return {INFINITY, INFINITY};  // NaN too
    errors.largest = std::max(errors.largest, difference);
    differences += difference * difference;
    squares += double{expected.values[at]} * double{expected.values[at]};
  }
  const double root = std::sqrt(squares / static_cast<double>(expected.values.size()));
  errors.largest /= root;
  errors.mean = std::sqrt(differences / static_cast<double>(expected.values.size())) / root;
  return errors;
}

/// Inputs are exact in bfloat16. A weight, a gradient of a score and a result are rounded to 8
/// bits: each by 2^-9 at most, by a third of that on average.
void expect_equal_to_the_host(const exec::AttentionShape& shape, std::size_t offset) {
  const exec::Positions positions = shape.query_positions();
  const std::int32_t width = shape.heads * shape.head_width;
  const exec::Matrix qkv = draw_halves(shape.batch * shape.sequence, 3 * width, 1);
  const exec::Matrix mixed_grad = draw_halves(shape.batch * positions.count, width, 2);
  const exec::Matrix before = draw_halves(qkv.rows, qkv.columns, 3);
  const exec::Matrix weights = exec::attention_weights(qkv, shape);
  const exec::Matrix mixed = exec::mix_values(qkv, weights, shape);
  exec::Matrix grad = exec::attention_grad(qkv, weights, mixed_grad, shape);
  exec::add(grad, before);
  for (const FiberOrder order : kOrders) {
    const Made made = run_narrowest(shape, order, offset, qkv, mixed_grad, before);
    const Errors mixed_errors = compare(made.mixed, mixed);
    EXPECT_LT(mixed_errors.mean, 0x1p-8);
    EXPECT_LT(mixed_errors.largest, 0x1p-5);
    const Errors grad_errors = compare(made.grad, grad);
    EXPECT_LT(grad_errors.mean, 0x1p-8);
    EXPECT_LT(grad_errors.largest, 0x1p-4);
  }
}

// One and several tiles of queries and keys, whose last ones are partial; all three widths of the
// kernels and heads that do not fill them; slices within and at the end of a sequence.
TEST(GpuFragments, AttentionEqualsTheHosts) {
  const exec::AttentionShape shapes[] = {
      {1, 1, 1, 8, {}},           {2, 37, 3, 24, {}},           {1, 130, 1, 32, {}},
      {2, 70, 2, 64, {}},         {1, 130, 1, 128, {}},         {2, 45, 2, 40, {{13, 20}}},
      {1, 66, 1, 128, {{64, 2}}}, {1, 200, 1, 64, {{70, 130}}}, {1, 40, 2, 96, {{0, 9}}}};
  for (const exec::AttentionShape& shape : shapes) {
    SCOPED_TRACE(shape.sequence);
    expect_equal_to_the_host(shape, 0);
  }
}

// Widths that are not a multiple of 8 and memory that is not aligned are copied number by number.
TEST(GpuFragments, HeadsNeedNoAlignment) {
  expect_equal_to_the_host({2, 37, 3, 20, {}}, 0);
  expect_equal_to_the_host({1, 70, 2, 33, {}}, 0);
  expect_equal_to_the_host({1, 70, 2, 32, {}}, 1);
}

// All scores are equal: weights are 1 / (position + 1), so that the values 0, 1, 2, ... mix to half
// of the position; and 1000 in every query changes no softmax, but would overflow without the
// running largest score.
TEST(GpuFragments, LargeScoresDoNotOverflow) {
  const exec::AttentionShape shape{1, 100, 1, 32, {}};
  exec::Matrix qkv(100, 96);
  for (std::int32_t row = 0; row < 100; ++row)
    for (std::int32_t column = 0; column < 96; ++column)
      qkv.row(row)[column] = column < 64 ? 1000.0F : static_cast<float>(row);
  const Made made =
      run<32>(shape, FiberOrder::kUp, 0, qkv, exec::Matrix(100, 32), exec::Matrix(100, 96));
  for (std::int32_t row = 0; row < 100; ++row)
    EXPECT_NEAR(made.mixed.row(row)[0], 0.5F * static_cast<float>(row), 0x1p-8F * 100);
}

TEST(GpuFragments, LogsAreThoseOfTheSumsOfExponentials) {
  const exec::AttentionShape shape{1, 90, 2, 64, {}};
  const exec::Matrix qkv = draw_halves(90, 3 * 128, 4);
  const Made made =
      run<64>(shape, FiberOrder::kDown, 0, qkv, exec::Matrix(90, 128), exec::Matrix(90, 384));
  for (std::int32_t head = 0; head < 2; ++head)
    for (std::int32_t row = 0; row < 90; ++row) {
      double sum = 0;
      for (std::int32_t key = 0; key <= row; ++key) {
        double score = 0;
        for (std::int32_t column = head * 64; column < head * 64 + 64; ++column)
          score += double{qkv.row(row)[column]} * double{qkv.row(key)[128 + column]};
        sum += std::exp(score * double{shape.scale()});
      }
      EXPECT_NEAR(made.logs.row(row)[head], std::log(sum), 1e-5);
    }
}

// The product of two 16 x 16 and 16 x 8 matrices whose entries name their places.
TEST(GpuFragments, LanesHoldWhatPtxSays) {
  float sums[exec::kWarp][4] = {};
  emulate(1, exec::kWarp, FiberOrder::kUp, [&] {
    const unsigned int lane = threadIdx.x, group = lane / 4, pair = lane % 4 * 2;
    const auto left = [](unsigned int row, unsigned int column) {
      return row == column ? 1.0F : 0.0F;  // the product is the right operand
    };
    const auto right = [](unsigned int row, unsigned int column) {
      return static_cast<float>(row * 8 + column);
    };
    const std::uint32_t lefts[4] = {
        exec::pack_halves(left(group, pair), left(group, pair + 1)),
        exec::pack_halves(left(group + 8, pair), left(group + 8, pair + 1)),
        exec::pack_halves(left(group, pair + 8), left(group, pair + 9)),
        exec::pack_halves(left(group + 8, pair + 8), left(group + 8, pair + 9))};
    const std::uint32_t rights[2] = {
        exec::pack_halves(right(pair, group), right(pair + 1, group)),
        exec::pack_halves(right(pair + 8, group), right(pair + 9, group))};
    exec::multiply_fragments(sums[lane], lefts, rights);
  });
  for (unsigned int lane = 0; lane < exec::kWarp; ++lane)
    for (unsigned int each = 0; each < 4; ++each) {
      const unsigned int entry = (lane / 4 + each / 2 * 8) * 8 + lane % 4 * 2 + each % 2;
      EXPECT_EQ(sums[lane][each], static_cast<float>(entry));
    }
}

}  // namespace
}  // namespace bubblescope::tests

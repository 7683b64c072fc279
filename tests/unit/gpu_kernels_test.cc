// Compares the kernels, run thread by thread on the host, with the layers of exec/training.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "exec/training/layers.h"
#include "exec/training/optimizer.h"
#include "exec/training/stage.h"
#include "tests/support/emulated_block.h"
#include "tests/support/test_matrix.h"
// The kernels need the CUDA emulation above.
#include "exec/gpu/device/entry_kernels.cuh"
#include "exec/gpu/device/row_kernels.cuh"
#include "exec/gpu/device/short_softmax_kernel.cuh"
#include "exec/gpu/device/softmax_kernels.cuh"
#include "exec/gpu/device/update_kernels.cuh"

namespace bubblescope::tests {
namespace {

constexpr unsigned int kThreads = 64;
constexpr std::int32_t kRows = 6;
constexpr std::int32_t kColumns = 83;  // more than a block has threads, and no multiple of a warp
constexpr FiberOrder kOrders[] = {FiberOrder::kUp, FiberOrder::kDown};

std::vector<exec::Bfloat16> to_halves(const exec::Matrix& matrix) {
  std::vector<exec::Bfloat16> halves;
  for (const float value : matrix.values) halves.push_back(exec::from_float<exec::Bfloat16>(value));
  return halves;
}

const std::vector<std::int32_t> kTokens{3, 0, 82, 3, 41, 7};

TEST(Bfloat16, RoundsToTheNearestAndTiesToEven) {
  // Seven bits follow the leading one, so the next number after 1 is 1 + 2^-7.
  EXPECT_EQ(exec::to_float(exec::from_float<exec::Bfloat16>(1.0F)), 1.0F);
  EXPECT_EQ(exec::to_float(exec::from_float<exec::Bfloat16>(1.0F + 0x1p-8F)), 1.0F);
  EXPECT_EQ(exec::to_float(exec::from_float<exec::Bfloat16>(1.0F + 0x1.8p-8F)), 1.0F + 0x1p-7F);
  EXPECT_EQ(exec::to_float(exec::from_float<exec::Bfloat16>(1.0F + 3 * 0x1p-8F)), 1.0F + 0x1p-6F);
  EXPECT_EQ(exec::to_float(exec::from_float<exec::Bfloat16>(-INFINITY)), -INFINITY);
  EXPECT_TRUE(std::isnan(exec::to_float(exec::from_float<exec::Bfloat16>(std::nanf("")))));
}

TEST(GpuKernels, NormEqualsTheHosts) {
  const exec::Matrix input = draw_matrix(kRows, kColumns, 1);
  const exec::Matrix gain = draw_matrix(1, kColumns, 2);
  for (const FiberOrder order : kOrders) {
    exec::Matrix target = unwritten(kRows, kColumns);
    emulate(kRows, kThreads, order, [&] {
      exec::norm_kernel<1>(target.values.data(), input.values.data(), gain.values.data(), kColumns);
    });
    expect_near(target, exec::apply_gain(exec::normalize(input), gain));
  }
}

TEST(GpuKernels, NormGradEqualsTheHostsAlsoInPlace) {
  const exec::Matrix input = draw_matrix(kRows, kColumns, 1);
  const exec::Matrix gain = draw_matrix(1, kColumns, 2);
  const exec::Matrix grad = draw_matrix(kRows, kColumns, 3);
  const exec::Matrix added = draw_matrix(kRows, kColumns, 4);
  exec::Matrix expected = exec::norm_grad(input, gain, grad);
  exec::add(expected, added);
  for (const FiberOrder order : kOrders) {
    exec::Matrix inverses = unwritten(1, kRows);
    exec::Matrix target = grad;
    emulate(kRows, kThreads, order, [&] {
      exec::norm_grad_kernel<1>(target.values.data(), input.values.data(), gain.values.data(),
                                target.values.data(), added.values.data(), inverses.values.data(),
                                kColumns);
    });
    expect_near(target, expected);
    exec::Matrix gains = unwritten(1, kColumns);
    emulate((kColumns + exec::kWarp - 1) / exec::kWarp, exec::kWarp * exec::kGainRows, order, [&] {
      exec::gain_grad_kernel(gains.values.data(), input.values.data(), grad.values.data(),
                             inverses.values.data(), kRows, kColumns);
    });
    expect_near(gains, exec::gain_grad(input, grad));
  }
}

TEST(GpuKernels, CausalSoftmaxAndItsGradientEqualTheHosts) {
  constexpr std::int32_t kLength = 70;
  const exec::Matrix scores = draw_matrix(2 * kLength, kLength, 5);
  exec::Matrix expected(scores.rows, scores.columns);
  for (std::int32_t row = 0; row < scores.rows; ++row) {
    exec::Matrix part(1, row % kLength + 1);
    std::copy_n(scores.row(row), part.columns, part.values.begin());
    part = exec::softmax(part);
    std::copy_n(part.values.begin(), part.columns, expected.row(row));
  }
  for (const FiberOrder order : kOrders) {
    exec::Matrix target = scores;
    emulate(static_cast<unsigned int>(scores.rows), kThreads, order,
            [&] { exec::causal_softmax_kernel<1>(target.values.data(), kLength, kLength); });
    expect_near(target, expected);
  }
  exec::Matrix grad = draw_matrix(scores.rows, kLength, 6);
  exec::Matrix expected_grad = grad;
  for (std::int32_t row = 0; row < grad.rows; ++row) {
    double sum = 0;
    for (std::int32_t column = 0; column < kLength; ++column)
      sum += double{grad.row(row)[column]} * double{expected.row(row)[column]};
    for (std::int32_t column = 0; column < kLength; ++column)
      expected_grad.row(row)[column] = static_cast<float>(double{expected.row(row)[column]} *
                                                          (double{grad.row(row)[column]} - sum));
  }
  emulate(static_cast<unsigned int>(grad.rows), kThreads, FiberOrder::kDown, [&] {
    exec::softmax_grad_kernel<1>(grad.values.data(), expected.values.data(), kLength);
  });
  expect_near(grad, expected_grad);
}

TEST(GpuKernels, DrawnWeightsEqualTheHostsBitForBit) {
  const exec::StagePlan plan{{1, 32, 2, 61, 16, 1, {}}, 0, 1, 5};
  const exec::Stage stage = exec::make_stage(plan);
  const std::vector<exec::WeightOutline> outlines = exec::outline_weights(plan);
  for (std::size_t at = 0; at < outlines.size(); ++at) {
    const exec::Matrix& expected = stage.weights[at];
    const exec::WeightDraw draw = exec::draw_of(plan, at, outlines[at]);
    const bool gain = outlines[at].is_gain;
    exec::Matrix weights = unwritten(expected.rows, expected.columns);
    std::vector<exec::Bfloat16> halves(expected.values.size());
    emulate(3, kThreads, FiberOrder::kDown, [&] {
      exec::draw_kernel(weights.values.data(), halves.data(), draw.key, gain ? 0 : draw.scale,
                        gain ? 1.0F : 0, static_cast<std::int64_t>(expected.values.size()));
    });
    EXPECT_EQ(weights, expected) << outlines[at].name;
    for (std::size_t entry = 0; entry < halves.size(); ++entry)
      ASSERT_EQ(halves[entry].bits, exec::from_float<exec::Bfloat16>(expected.values[entry]).bits);
  }
}

TEST(GpuKernels, CrossEntropyAndItsGradientEqualTheHosts) {
  const exec::Matrix logits = draw_matrix(kRows, kColumns, 7);
  const exec::Matrix probabilities = exec::softmax(logits);
  for (const FiberOrder order : kOrders) {
    exec::Matrix target = logits;
    exec::Matrix losses = unwritten(1, kRows);
    float mean = std::nanf("");
    emulate(kRows, kThreads, order, [&] {
      exec::cross_entropy_kernel<1>(target.values.data(), kTokens.data(), losses.values.data(),
                                    kColumns);
    });
    emulate(1, kThreads, order, [&] { exec::mean_kernel(&mean, losses.values.data(), kRows); });
    expect_near(target, probabilities);
    EXPECT_NEAR(mean, exec::cross_entropy(probabilities, kTokens), 1e-5);
    emulate(kRows, kThreads, order, [&] {
      exec::cross_entropy_grad_kernel<1>(target.values.data(), kTokens.data(), 0.25F / kRows,
                                         kColumns);
    });
    expect_near(target, exec::cross_entropy_grad(probabilities, kTokens, 0.25F));
  }
}

TEST(GpuKernels, GeluAndItsGradientEqualTheHostsAlsoInPlace) {
  const exec::Matrix input = draw_matrix(kRows, kColumns, 8);
  const exec::Matrix grad = draw_matrix(kRows, kColumns, 9);
  const auto count = static_cast<std::int64_t>(input.values.size());
  exec::Matrix target = unwritten(kRows, kColumns);
  exec::Matrix back = grad;
  emulate(2, kThreads, FiberOrder::kUp,
          [&] { exec::gelu_kernel(target.values.data(), input.values.data(), count); });
  emulate(2, kThreads, FiberOrder::kUp, [&] {
    exec::gelu_grad_kernel(back.values.data(), input.values.data(), back.values.data(), count);
  });
  expect_near(target, exec::gelu(input));
  expect_near(back, exec::gelu_grad(input, grad));
}

TEST(GpuKernels, EmbeddingAndItsGradientReadAndWriteTheTokensRows) {
  const exec::Matrix embedding = draw_matrix(kColumns, kColumns, 10);
  const exec::Matrix position = draw_matrix(3, kColumns, 11);
  exec::Matrix target = unwritten(kRows, kColumns);
  emulate(kRows, kThreads, FiberOrder::kUp, [&] {
    exec::embed_kernel(target.values.data(), embedding.values.data(), position.values.data(),
                       kTokens.data(), kColumns, 3);
  });
  exec::Matrix embedding_grad(kColumns, kColumns);
  exec::Matrix position_grad(3, kColumns);
  const unsigned int tiles = (kColumns + kThreads - 1) / kThreads;
  emulate(tiles * exec::kEmbedParts, kThreads, FiberOrder::kUp, [&] {
    exec::embed_grad_kernel(embedding_grad.values.data(), position_grad.values.data(),
                            target.values.data(), kTokens.data(), kRows, kColumns, 3);
  });
  exec::Matrix expected(kRows, kColumns);
  exec::Matrix expected_grad(kColumns, kColumns);
  exec::Matrix expected_position(3, kColumns);
  for (std::int32_t row = 0; row < kRows; ++row)
    for (std::int32_t column = 0; column < kColumns; ++column) {
      const std::int32_t token = kTokens[static_cast<std::size_t>(row)];
      const float sum = embedding.row(token)[column] + position.row(row % 3)[column];
      expected.row(row)[column] = sum;
      expected_grad.row(token)[column] += sum;
      expected_position.row(row % 3)[column] += sum;
    }
  EXPECT_EQ(target, expected);
  EXPECT_EQ(embedding_grad, expected_grad);  // in the order of the rows
  EXPECT_EQ(position_grad, expected_position);
}

TEST(GpuKernels, OptimizersEqualTheHostsAndCopyTheWeights) {
  for (const auto kind :
       {exec::OptimizerOptions::Kind::kSgd, exec::OptimizerOptions::Kind::kAdam}) {
    std::vector<exec::Matrix> expected{draw_matrix(kRows, kColumns, 12)};
    exec::Matrix weights = expected[0];
    exec::Matrix mean(kRows, kColumns);
    exec::Matrix square(kRows, kColumns);
    std::vector<exec::Bfloat16> copy(weights.values.size());
    std::vector<float> steps(3, 0.0F);
    exec::OptimizerState state;
    const auto count = static_cast<std::int64_t>(weights.values.size());
    for (int step = 1; step <= 3; ++step) {
      const exec::Matrix grad = draw_matrix(kRows, kColumns, static_cast<std::uint64_t>(20 + step));
      exec::update(expected, {grad}, state, {kind, 0.1F});
      const exec::AdamState adam{mean.values.data(), square.values.data(), steps.data()};
      emulate(2, kThreads, FiberOrder::kUp, [&] { exec::adam_step_kernel(steps.data()); });
      emulate(3, kThreads, FiberOrder::kUp, [&] {
        if (kind == exec::OptimizerOptions::Kind::kAdam)
          exec::adam_kernel(weights.values.data(), copy.data(), grad.values.data(), adam, 0.1F,
                            count);
        else
          exec::sgd_kernel(weights.values.data(), copy.data(), grad.values.data(), 0.1F, count);
      });
    }
    expect_near(weights, expected[0]);
    for (std::size_t at = 0; at < copy.size(); ++at)
      EXPECT_EQ(copy[at].bits, exec::from_float<exec::Bfloat16>(weights.values[at]).bits);
  }
}

TEST(GpuKernels, ScaleEveryEntryOnce) {
  exec::Matrix values = draw_matrix(kRows, kColumns, 13);
  std::vector<exec::Matrix> expected{values};
  exec::multiply(expected, 0.75F);
  emulate(3, kThreads, FiberOrder::kUp, [&] {
    exec::scale_kernel(values.values.data(), 0.75F,
                       static_cast<std::int64_t>(values.values.size()));
  });
  EXPECT_EQ(values, expected[0]);
}

TEST(GpuKernels, StoreHalvesWithFloatSums) {
  const exec::Matrix input = draw_matrix(kRows, kColumns, 1);
  const exec::Matrix gain = draw_matrix(1, kColumns, 2);
  const std::vector<exec::Bfloat16> input_halves = to_halves(input);
  const std::vector<exec::Bfloat16> gain_halves = to_halves(gain);
  std::vector<exec::Bfloat16> target(input_halves.size(), exec::Bfloat16{0x7fff});
  emulate(kRows, kThreads, FiberOrder::kUp, [&] {
    exec::norm_kernel<1>(target.data(), input_halves.data(), gain_halves.data(), kColumns);
  });
  exec::Matrix made(kRows, kColumns);
  for (std::size_t at = 0; at < target.size(); ++at) made.values[at] = exec::to_float(target[at]);
  // There are three roundings to 8 bits: input, gain and result.
  expect_near(made, exec::apply_gain(exec::normalize(input), gain), 3 * 0x1p-8F);
}

/// A matrix in memory of the device, whose rows of a multiple of 16 bytes are aligned.
template <class Value>
std::vector<exec::Chunk<exec::kWideChunk<Value>, Value>> to_chunks(const exec::Matrix& matrix) {
  constexpr std::size_t kCount = exec::kWideChunk<Value>;
  std::vector<exec::Chunk<exec::kWideChunk<Value>, Value>> chunks(matrix.values.size() / kCount);
  for (std::size_t at = 0; at < matrix.values.size(); ++at)
    chunks[at / kCount].values[at % kCount] = exec::from_float<Value>(matrix.values[at]);
  return chunks;
}

template <class Value>
void expect_chunks(const std::vector<exec::Chunk<exec::kWideChunk<Value>, Value>>& made,
                   const std::vector<Value>& expected) {
  constexpr std::size_t kCount = exec::kWideChunk<Value>;
  for (std::size_t at = 0; at < expected.size(); ++at)
    ASSERT_NEAR(exec::to_float(made[at / kCount].values[at % kCount]), exec::to_float(expected[at]),
                sizeof(Value) == 2 ? 0x1p-7F : 2e-6F)
        << "entry " << at;
}

/// Wide rows must give what single columns give, up to the order of sums and a rounding.
template <class Value>
void expect_wide_as_narrow() {
  constexpr int kWide = exec::kWideChunk<Value>;
  constexpr std::int32_t kEntries = 8 * 40;  // more chunks than threads, and the last are partial
  const exec::Matrix input = draw_matrix(kRows, kEntries, 1), gain = draw_matrix(1, kEntries, 2),
                     grad = draw_matrix(kRows, kEntries, 3),
                     added = draw_matrix(kRows, kEntries, 4);
  auto inputs = to_chunks<Value>(input), gains = to_chunks<Value>(gain),
       grads = to_chunks<Value>(grad), more = to_chunks<Value>(added);
  const auto narrow = [](auto& chunks) {
    std::vector<Value> values;
    for (const auto& chunk : chunks)
      values.insert(values.end(), std::begin(chunk.values), std::end(chunk.values));
    return values;
  };
  const auto data = [](auto& chunks) { return chunks[0].values; };
  auto a = narrow(inputs), b = narrow(gains), c = narrow(grads), d = narrow(more);
  std::vector<float> inverses(kRows), losses(kRows);
  const auto each = [&](const auto& kernel) {
    emulate(kRows, kThreads, FiberOrder::kDown, kernel);
  };
  each([&] {
    exec::norm_grad_kernel<1>(c.data(), a.data(), b.data(), c.data(), d.data(), inverses.data(),
                              kEntries);
  });
  each([&] {
    exec::norm_grad_kernel<kWide>(data(grads), data(inputs), data(gains), data(grads), data(more),
                                  inverses.data(), kEntries);
  });
  expect_chunks<Value>(grads, c);
  each([&] { exec::norm_kernel<1>(a.data(), a.data(), b.data(), kEntries); });
  each([&] { exec::norm_kernel<kWide>(data(inputs), data(inputs), data(gains), kEntries); });
  expect_chunks<Value>(inputs, a);
  auto in_warps = inputs;  // two rows per block, and a block without rows
  emulate(kRows / 2 + 1, kThreads, FiberOrder::kDown, [&] {
    exec::short_causal_softmax_kernel<kWide, 4>(data(in_warps), kRows, kEntries, kRows);
  });
  auto in_longer_warps = inputs;
  emulate(kRows / 2 + 1, kThreads, FiberOrder::kUp, [&] {
    exec::short_causal_softmax_kernel<kWide, 8>(data(in_longer_warps), kRows, kEntries, kRows);
  });
  each([&] { exec::causal_softmax_kernel<1>(a.data(), kEntries, kRows); });
  expect_chunks<Value>(in_warps, a);
  expect_chunks<Value>(in_longer_warps, a);
  each([&] { exec::causal_softmax_kernel<kWide>(data(inputs), kEntries, kRows); });
  expect_chunks<Value>(inputs, a);
  each([&] { exec::softmax_grad_kernel<1>(c.data(), a.data(), kEntries); });
  each([&] { exec::softmax_grad_kernel<kWide>(data(grads), data(inputs), kEntries); });
  expect_chunks<Value>(grads, c);
  each([&] { exec::cross_entropy_kernel<1>(d.data(), kTokens.data(), losses.data(), kEntries); });
  each([&] {
    exec::cross_entropy_kernel<kWide>(data(more), kTokens.data(), losses.data(), kEntries);
  });
  expect_chunks<Value>(more, d);
  each([&] { exec::cross_entropy_grad_kernel<1>(d.data(), kTokens.data(), 0.25F, kEntries); });
  each(
      [&] { exec::cross_entropy_grad_kernel<kWide>(data(more), kTokens.data(), 0.25F, kEntries); });
  expect_chunks<Value>(more, d);
}

TEST(GpuKernels, WideRowsGiveWhatSingleColumnsGive) {
  expect_wide_as_narrow<float>();
  expect_wide_as_narrow<exec::Bfloat16>();
}

TEST(GpuKernels, TheEmulationFindsThreadsThatWaitAtDifferentPlaces) {
  const auto wait = [] {
    if (threadIdx.x > 0) __syncthreads();
  };
  EXPECT_THROW(emulate(1, kThreads, FiberOrder::kUp, wait), std::logic_error);
}

}  // namespace
}  // namespace bubblescope::tests

// Computes GEMMs entry by entry, with sums in float32.
#include "tests/fake_cuda/blas_numbers.h"

#include <bit>
#include <cmath>
#include <vector>

namespace bubblescope::tests::fake_cuda {

namespace {

constexpr float kSlope = 0.7978845608F;  // sqrt(2 / pi)
constexpr float kCubic = 0.044715F;

std::uint16_t to_half(float value) {
  if (std::isnan(value)) return 0x7fff;
  const auto bits = std::bit_cast<std::uint32_t>(value);
  return static_cast<std::uint16_t>((bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16);
}

float from_half(std::uint16_t half) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(half) << 16);
}

std::size_t index_of(const BlasLayout& layout, std::int32_t of_batch, std::uint64_t row,
                     std::uint64_t column) {
  return static_cast<std::size_t>(of_batch * layout.step) +
         column * static_cast<std::size_t>(layout.leading) + row;
}

float gelu(float x) { return 0.5F * x * (1 + std::tanh(kSlope * (x + kCubic * x * x * x))); }

float gelu_slope(float x) {
  const float bent = std::tanh(kSlope * (x + kCubic * x * x * x));
  return 0.5F * (1 + bent) + 0.5F * x * (1 - bent * bent) * kSlope * (1 + 3 * kCubic * x * x);
}

/// Returns the entries row by row if `turns` is set, or else column by column.
std::vector<float> read(const BlasMatrix& matrix, std::int32_t of_batch, bool turns) {
  const BlasLayout& layout = matrix.layout;
  std::vector<float> values;
  values.reserve(layout.rows * layout.columns);
  const std::uint64_t outer = turns ? layout.rows : layout.columns;
  const std::uint64_t inner = turns ? layout.columns : layout.rows;
  for (std::uint64_t major = 0; major < outer; ++major)
    for (std::uint64_t minor = 0; minor < inner; ++minor)
      values.push_back(matrix.get(of_batch, turns ? major : minor, turns ? minor : major));
  return values;
}

float finish(const BlasGemmOperands& gemm_operands, std::int32_t of_batch, std::uint64_t row,
             std::uint64_t column, float value) {
  switch (static_cast<int>(gemm_operands.gemm.epilogue)) {
    case CUBLASLT_EPILOGUE_GELU_AUX:
      gemm_operands.aux.set(of_batch, row, column, value);
      [[fallthrough]];
    case CUBLASLT_EPILOGUE_GELU: return gelu(value);
    case CUBLASLT_EPILOGUE_DGELU:
      return value * gelu_slope(gemm_operands.aux.get(of_batch, row, column));
    default: return value;
  }
}

void multiply_one(const BlasGemmOperands& gemm_operands, std::int32_t of_batch) {
  const BlasLayout& target = gemm_operands.target.layout;
  // In this order, the inner loop reads both operands contiguously.
  const std::vector<float> first =
      read(gemm_operands.first, of_batch, gemm_operands.gemm.transpose_first == CUBLAS_OP_N);
  const std::vector<float> second =
      read(gemm_operands.second, of_batch, gemm_operands.gemm.transpose_second != CUBLAS_OP_N);
  const std::uint64_t inner = first.size() / target.rows;
  for (std::uint64_t column = 0; column < target.columns; ++column)
    for (std::uint64_t row = 0; row < target.rows; ++row) {
      float sum = 0;
      for (std::uint64_t at = 0; at < inner; ++at)
        sum += first[row * inner + at] * second[column * inner + at];
      sum *= gemm_operands.scale;
      if (gemm_operands.beta != 0)
        sum += gemm_operands.beta * gemm_operands.source.get(of_batch, row, column);
      gemm_operands.target.set(of_batch, row, column,
                               finish(gemm_operands, of_batch, row, column, sum));
    }
}

}  // namespace

float BlasMatrix::get(std::int32_t of_batch, std::uint64_t row, std::uint64_t column) const {
  const std::size_t at = index_of(layout, of_batch, row, column);
  return layout.type == CUDA_R_32F ? static_cast<const float*>(data)[at]
                                   : from_half(static_cast<const std::uint16_t*>(data)[at]);
}

void BlasMatrix::set(std::int32_t of_batch, std::uint64_t row, std::uint64_t column,
                     float value) const {
  const std::size_t at = index_of(layout, of_batch, row, column);
  if (layout.type == CUDA_R_32F)
    static_cast<float*>(data)[at] = value;
  else
    static_cast<std::uint16_t*>(data)[at] = to_half(value);
}

std::size_t BlasMatrix::bytes() const {
  const std::size_t size = layout.type == CUDA_R_32F ? 4 : 2;
  return (index_of(layout, layout.batch - 1, layout.rows - 1, layout.columns - 1) + 1) * size;
}

void multiply(const BlasGemmOperands& gemm_operands) {
  for (std::int32_t of_batch = 0; of_batch < gemm_operands.target.layout.batch; ++of_batch)
    multiply_one(gemm_operands, of_batch);
}

}  // namespace bubblescope::tests::fake_cuda

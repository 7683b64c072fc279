// Kernels and GEMMs on the host.
#include "tests/support/fake_kernels.h"

#include <algorithm>
#include <cmath>
#include <variant>
#include <vector>

#include "exec/gpu/kernels.h"
#include "exec/training/draw_entry.h"
#include "exec/training/layers.h"
#include "exec/training/matrix.h"
#include "tests/support/fake_attention.h"

namespace bubblescope::tests {

namespace {

const float* floats(const void* data) { return static_cast<const float*>(data); }

/// Runs the kernel of each type of arguments. All entries are float32.
class HostKernels {
 public:
  explicit HostKernels(const exec::KernelLaunch& launch)
      : rows_(static_cast<std::int32_t>(launch.rows)),
        columns_(static_cast<std::int32_t>(launch.columns)),
        count_(launch.rows * launch.columns) {}

  void operator()(const exec::EmbedArguments& a) const {
    for (std::int32_t row = 0; row < rows_; ++row)
      for (std::int32_t column = 0; column < columns_; ++column)
        static_cast<float*>(a.target)[entry(row, column)] =
            floats(a.embedding)[entry(a.tokens[row], column)] +
            floats(a.position)[entry(row % a.period, column)];
  }
  void operator()(const exec::EmbedGradArguments& a) const {
    for (std::int32_t row = 0; row < rows_; ++row)
      for (std::int32_t column = 0; column < columns_; ++column) {
        const float grad = floats(a.grad)[entry(row, column)];
        a.embedding_grad[entry(a.tokens[row], column)] += grad;
        a.position_grad[entry(row % a.period, column)] += grad;
      }
  }
  void operator()(const exec::NormArguments& a) const {
    write(a.target, exec::apply_gain(exec::normalize(matrix(a.input)), row_of(a.gain)));
  }
  void operator()(const exec::NormGradArguments& a) const {
    const exec::Matrix input = matrix(a.input);
    exec::Matrix result = exec::norm_grad(input, row_of(a.gain), matrix(a.grad));
    if (a.added != nullptr) exec::add(result, matrix(a.added));
    write(a.target, result);
    for (std::int32_t row = 0; row < rows_; ++row) {
      float squares = 0;
      for (std::int32_t column = 0; column < columns_; ++column)
        squares += input.row(row)[column] * input.row(row)[column];
      a.inverses[row] = 1 / std::sqrt(squares / static_cast<float>(columns_) + exec::kNormEpsilon);
    }
  }
  void operator()(const exec::GainGradArguments& a) const {
    write(a.gain_grad, exec::gain_grad(matrix(a.input), matrix(a.grad)));
  }
  void operator()(const exec::CausalSoftmaxArguments& a) const {
    const exec::Matrix scores = matrix(a.scores);
    exec::Matrix result(rows_, columns_);
    for (std::int32_t row = 0; row < rows_; ++row) {
      const auto count = static_cast<std::int32_t>(columns_ - a.period + row % a.period) + 1;
      exec::Matrix part(1, count);
      std::copy_n(scores.row(row), count, part.values.begin());
      part = exec::softmax(part);
      std::copy_n(part.values.begin(), count, result.row(row));
    }
    write(a.scores, result);
  }
  void operator()(const exec::SoftmaxGradArguments& a) const {
    exec::Matrix grad = matrix(a.grad);
    const exec::Matrix weights = matrix(a.weights);
    for (std::int32_t row = 0; row < rows_; ++row) {
      float sum = 0;
      for (std::int32_t column = 0; column < columns_; ++column)
        sum += grad.row(row)[column] * weights.row(row)[column];
      for (std::int32_t column = 0; column < columns_; ++column)
        grad.row(row)[column] = weights.row(row)[column] * (grad.row(row)[column] - sum);
    }
    write(a.grad, grad);
  }
  void operator()(const exec::GeluArguments& a) const {
    write(a.target, exec::gelu(matrix(a.input)));
  }
  void operator()(const exec::GeluGradArguments& a) const {
    write(a.target, exec::gelu_grad(matrix(a.input), matrix(a.grad)));
  }
  void operator()(const exec::CrossEntropyArguments& a) const {
    const exec::Matrix probabilities = exec::softmax(matrix(a.logits));
    for (std::int32_t row = 0; row < rows_; ++row)
      a.losses[row] = -std::log(probabilities.row(row)[a.tokens[row]]);
    write(a.logits, probabilities);
  }
  void operator()(const exec::CrossEntropyGradArguments& a) const {
    const std::vector<std::int32_t> tokens(a.tokens, a.tokens + rows_);
    write(a.probabilities, exec::cross_entropy_grad(matrix(a.probabilities), tokens, a.scale));
  }
  void operator()(const exec::AttentionArguments& a) const { attend_on_host(a); }
  void operator()(const exec::QueryGradArguments& a) const { add_query_grad_on_host(a); }
  void operator()(const exec::KeyGradArguments& a) const { add_key_grad_on_host(a); }
  void operator()(const exec::MeanArguments& a) const {
    *a.mean = 0;
    for (std::int32_t at = 0; at < columns_; ++at)
      *a.mean += a.values[at] / static_cast<float>(columns_);
  }
  void operator()(const exec::AddArguments& a) const {
    for (std::int64_t at = 0; at < count_; ++at) a.sum[at] += a.values[at];
  }
  void operator()(const exec::ScaleArguments& a) const {
    for (std::int64_t at = 0; at < count_; ++at) a.values[at] *= a.factor;
  }
  void operator()(const exec::SgdArguments& a) const {
    for (std::int64_t at = 0; at < count_; ++at) {
      a.weights[at] -= a.learning_rate * a.grad[at];
      write_copy(a.copy, at, a.weights[at]);
    }
  }
  void operator()(const exec::AdamArguments& a) const {
    for (std::int64_t at = 0; at < count_; ++at) {
      const float grad = a.grad[at];
      float& mean = a.mean[at];
      float& square = a.square[at];
      mean = exec::kAdamMeanDecay * mean + (1 - exec::kAdamMeanDecay) * grad;
      square = exec::kAdamSquareDecay * square + (1 - exec::kAdamSquareDecay) * grad * grad;
      a.weights[at] -= a.learning_rate *
                       (mean / a.steps[1] / (std::sqrt(square / a.steps[2]) + exec::kAdamEpsilon));
      write_copy(a.copy, at, a.weights[at]);
    }
  }
  void operator()(const exec::AdamStepArguments& a) const {
    a.steps[0] += 1;
    a.steps[1] = 1 - std::pow(exec::kAdamMeanDecay, a.steps[0]);
    a.steps[2] = 1 - std::pow(exec::kAdamSquareDecay, a.steps[0]);
  }
  void operator()(const exec::DrawArguments& a) const {
    for (std::int64_t at = 0; at < count_; ++at) {
      const float value =
          a.offset + a.scale * exec::draw_entry(a.key, static_cast<std::uint64_t>(at));
      if (a.weights != nullptr) a.weights[at] = value;
      write_copy(a.copy, at, value);
    }
  }

 private:
  std::int64_t entry(std::int64_t row, std::int32_t column) const {
    return row * columns_ + column;
  }
  exec::Matrix matrix(const void* data) const { return read(data, rows_); }
  exec::Matrix row_of(const void* data) const { return read(data, 1); }
  exec::Matrix read(const void* data, std::int32_t rows) const {
    exec::Matrix matrix(rows, columns_);
    std::copy_n(floats(data), matrix.values.size(), matrix.values.begin());
    return matrix;
  }
  static void write(void* to, const exec::Matrix& matrix) {
    std::copy(matrix.values.begin(), matrix.values.end(), static_cast<float*>(to));
  }
  static void write_copy(void* copy, std::int64_t at, float value) {
    if (copy != nullptr) static_cast<float*>(copy)[at] = value;
  }

  std::int32_t rows_;
  std::int32_t columns_;
  std::int64_t count_;
};

/// Applies the epilogue to the sums in the target.
void apply_epilogue(const BubblescopeGemm& p) {
  for (std::int32_t row = 0; row < p.rows; ++row) {
    float* const target = static_cast<float*>(p.target) + row * p.target_stride;
    float* const aux =
        p.aux == nullptr ? nullptr : static_cast<float*>(p.aux) + row * p.target_stride;
    exec::Matrix sums(1, p.columns);
    std::copy_n(target, p.columns, sums.values.begin());
    if (p.epilogue == kBubblescopeGelu) {
      if (aux != nullptr) std::copy_n(target, p.columns, aux);
      sums = exec::gelu(sums);
    } else {
      exec::Matrix before(1, p.columns);
      std::copy_n(aux, p.columns, before.values.begin());
      sums = exec::gelu_grad(before, sums);
    }
    std::copy_n(sums.values.begin(), p.columns, target);
  }
}

}  // namespace

void run_on_host(const exec::KernelLaunch& launch) {
  std::visit(HostKernels(launch), launch.arguments);
}

void run_on_host(const BubblescopeGemm& p) {
  const auto factor = [](const BubblescopeOperand& from, std::int32_t rows, std::int32_t columns,
                         std::int64_t at) {
    return exec::Operand{floats(from.data) + at * from.step, rows, columns,
                         static_cast<std::int32_t>(from.stride), from.transposed != 0};
  };
  for (std::int32_t at = 0; at < p.batch; ++at) {
    float* const to = static_cast<float*>(p.target) + at * p.target_step;
    const float* const source =
        p.source == nullptr ? nullptr : floats(p.source) + at * p.target_step;
    for (std::int32_t row = 0; row < p.rows && source != nullptr && source != to; ++row)
      std::copy_n(source + row * p.target_stride, p.columns, to + row * p.target_stride);
    exec::multiply(factor(p.left, p.rows, p.k, at), factor(p.right, p.k, p.columns, at),
                   {to, p.rows, p.columns, static_cast<std::int32_t>(p.target_stride)},
                   {p.scale, source != nullptr});
  }
  if (p.epilogue != kBubblescopeNoEpilogue) apply_epilogue(p);
}

}  // namespace bubblescope::tests

// Kernels and GEMMs on the host.
#include "tests/support/fake_kernels.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "exec/gpu/kernels.h"
#include "exec/training/draw_entry.h"
#include "exec/training/layers.h"
#include "exec/training/matrix.h"
#include "tests/support/fake_attention.h"

namespace bubblescope::tests {

namespace {

const float* floats(const void* data) { return static_cast<const float*>(data); }

class HostLaunch {
 public:
  explicit HostLaunch(const BubblescopeLaunch& launch)
      : launch_(launch),
        rows_(static_cast<std::int32_t>(launch.rows)),
        columns_(static_cast<std::int32_t>(launch.columns)) {}

  exec::Matrix matrix(const void* data) const { return read(data, rows_); }
  exec::Matrix row(const void* data) const { return read(data, 1); }
  exec::Matrix input(int at) const { return matrix(launch_.inputs[at]); }
  exec::Matrix target() const { return matrix(launch_.target); }
  float* extra(int at) const { return static_cast<float*>(launch_.extra[at]); }
  std::vector<std::int32_t> tokens() const {
    const auto* const data = static_cast<const std::int32_t*>(launch_.inputs[2]);
    return {data, data + rows_};
  }
  void write(const exec::Matrix& matrix) const { write(launch_.target, matrix); }
  static void write(void* to, const exec::Matrix& matrix) {
    std::copy(matrix.values.begin(), matrix.values.end(), static_cast<float*>(to));
  }

 private:
  exec::Matrix read(const void* data, std::int32_t rows) const {
    exec::Matrix matrix(rows, columns_);
    std::copy_n(floats(data), matrix.values.size(), matrix.values.begin());
    return matrix;
  }

  const BubblescopeLaunch& launch_;
  std::int32_t rows_;
  std::int32_t columns_;
};

void embed(const BubblescopeLaunch& launch, const HostLaunch& host) {
  const std::vector<std::int32_t> tokens = host.tokens();
  for (std::int64_t row = 0; row < launch.rows; ++row)
    for (std::int64_t column = 0; column < launch.columns; ++column)
      static_cast<float*>(launch.target)[row * launch.columns + column] =
          floats(
              launch.inputs[0])[tokens[static_cast<std::size_t>(row)] * launch.columns + column] +
          floats(launch.inputs[1])[row % launch.period * launch.columns + column];
}

void embed_grad(const BubblescopeLaunch& launch, const HostLaunch& host) {
  const std::vector<std::int32_t> tokens = host.tokens();
  for (std::int64_t row = 0; row < launch.rows; ++row)
    for (std::int64_t column = 0; column < launch.columns; ++column) {
      const float grad = floats(launch.inputs[0])[row * launch.columns + column];
      host.extra(0)[tokens[static_cast<std::size_t>(row)] * launch.columns + column] += grad;
      host.extra(1)[row % launch.period * launch.columns + column] += grad;
    }
}

void norm_grad_of(const BubblescopeLaunch& launch, const HostLaunch& host) {
  const exec::Matrix input = host.input(0);
  exec::Matrix result = exec::norm_grad(input, host.row(launch.inputs[1]), host.input(2));
  if (launch.inputs[3] != nullptr) exec::add(result, host.input(3));
  host.write(result);
  for (std::int32_t row = 0; row < input.rows; ++row) {
    float squares = 0;
    for (std::int32_t column = 0; column < input.columns; ++column)
      squares += input.row(row)[column] * input.row(row)[column];
    host.extra(0)[row] =
        1 / std::sqrt(squares / static_cast<float>(input.columns) + exec::kNormEpsilon);
  }
}

void causal_softmax(const BubblescopeLaunch& launch, const HostLaunch& host) {
  const exec::Matrix scores = host.target();
  exec::Matrix result(scores.rows, scores.columns);
  for (std::int32_t row = 0; row < scores.rows; ++row) {
    const auto count =
        static_cast<std::int32_t>(launch.columns - launch.period + row % launch.period) + 1;
    exec::Matrix part(1, count);
    std::copy_n(scores.row(row), count, part.values.begin());
    part = exec::softmax(part);
    std::copy_n(part.values.begin(), count, result.row(row));
  }
  host.write(result);
}

void softmax_grad_of(const HostLaunch& host) {
  exec::Matrix grad = host.target();
  const exec::Matrix weights = host.input(0);
  for (std::int32_t row = 0; row < grad.rows; ++row) {
    float sum = 0;
    for (std::int32_t column = 0; column < grad.columns; ++column)
      sum += grad.row(row)[column] * weights.row(row)[column];
    for (std::int32_t column = 0; column < grad.columns; ++column)
      grad.row(row)[column] = weights.row(row)[column] * (grad.row(row)[column] - sum);
  }
  host.write(grad);
}

void cross_entropy_of(const HostLaunch& host) {
  const exec::Matrix probabilities = exec::softmax(host.target());
  const std::vector<std::int32_t> tokens = host.tokens();
  for (std::int32_t row = 0; row < probabilities.rows; ++row)
    host.extra(0)[row] = -std::log(probabilities.row(row)[tokens[static_cast<std::size_t>(row)]]);
  host.write(probabilities);
}

void update(const BubblescopeLaunch& launch, const HostLaunch& host, bool adam) {
  for (std::int64_t at = 0; at < launch.rows * launch.columns; ++at) {
    const float grad = floats(launch.inputs[0])[at];
    float change = grad;
    if (adam) {
      float& mean = host.extra(1)[at];
      float& square = host.extra(2)[at];
      mean = exec::kAdamMeanDecay * mean + (1 - exec::kAdamMeanDecay) * grad;
      square = exec::kAdamSquareDecay * square + (1 - exec::kAdamSquareDecay) * grad * grad;
      const float* const steps = floats(launch.inputs[1]);
      change = mean / steps[1] / (std::sqrt(square / steps[2]) + exec::kAdamEpsilon);
    }
    host.extra(0)[at] -= launch.scalars[0] * change;
    if (launch.target != nullptr) static_cast<float*>(launch.target)[at] = host.extra(0)[at];
  }
}

void draw_weights(const BubblescopeLaunch& launch, const HostLaunch& host) {
  for (std::int64_t at = 0; at < launch.rows * launch.columns; ++at) {
    const float drawn =
        exec::draw_entry(static_cast<std::uint64_t>(launch.period), static_cast<std::uint64_t>(at));
    const float value = launch.scalars[1] + launch.scalars[0] * drawn;
    if (launch.extra[0] != nullptr) host.extra(0)[at] = value;
    if (launch.target != nullptr) static_cast<float*>(launch.target)[at] = value;
  }
}

void count_step(const HostLaunch& host) {
  float* const steps = host.extra(0);
  steps[0] += 1;
  steps[1] = 1 - std::pow(exec::kAdamMeanDecay, steps[0]);
  steps[2] = 1 - std::pow(exec::kAdamSquareDecay, steps[0]);
}

void sum_up(const BubblescopeLaunch& launch, const HostLaunch& host, bool mean) {
  const std::int64_t count = mean ? launch.columns : launch.rows * launch.columns;
  if (mean) host.extra(0)[0] = 0;
  for (std::int64_t at = 0; at < count; ++at)
    host.extra(0)[mean ? 0 : at] +=
        floats(launch.inputs[0])[at] / (mean ? static_cast<float>(count) : 1.0F);
}

void scale(const BubblescopeLaunch& launch, const HostLaunch& host) {
  for (std::int64_t at = 0; at < launch.rows * launch.columns; ++at)
    host.extra(0)[at] *= launch.scalars[0];
}

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

void run_on_host(const BubblescopeLaunch& launch) {
  const HostLaunch host(launch);
  switch (static_cast<exec::Kernel>(launch.kernel)) {
    case exec::Kernel::kEmbed: return embed(launch, host);
    case exec::Kernel::kEmbedGrad: return embed_grad(launch, host);
    case exec::Kernel::kNorm:
      return host.write(
          exec::apply_gain(exec::normalize(host.input(0)), host.row(launch.inputs[1])));
    case exec::Kernel::kNormGrad: return norm_grad_of(launch, host);
    case exec::Kernel::kGainGrad:
      return HostLaunch::write(launch.extra[0], exec::gain_grad(host.input(0), host.input(1)));
    case exec::Kernel::kCausalSoftmax: return causal_softmax(launch, host);
    case exec::Kernel::kSoftmaxGrad: return softmax_grad_of(host);
    case exec::Kernel::kGelu: return host.write(exec::gelu(host.input(0)));
    case exec::Kernel::kGeluGrad: return host.write(exec::gelu_grad(host.input(0), host.input(1)));
    case exec::Kernel::kCrossEntropy: return cross_entropy_of(host);
    case exec::Kernel::kCrossEntropyGrad:
      return host.write(exec::cross_entropy_grad(host.target(), host.tokens(), launch.scalars[0]));
    case exec::Kernel::kMean: return sum_up(launch, host, true);
    case exec::Kernel::kAdd: return sum_up(launch, host, false);
    case exec::Kernel::kScale: return scale(launch, host);
    case exec::Kernel::kSgd: return update(launch, host, false);
    case exec::Kernel::kAdam: return update(launch, host, true);
    case exec::Kernel::kAdamStep: return count_step(host);
    case exec::Kernel::kAttention:
    case exec::Kernel::kQueryGrad:
    case exec::Kernel::kKeyGrad: return attend_on_host(launch);
    case exec::Kernel::kDraw: return draw_weights(launch, host);
  }
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

// SGD and Adam.
#include "exec/training/optimizer.h"

#include <cmath>

namespace bubblescope {

namespace {

constexpr float kMeanDecay = 0.9F;
constexpr float kSquareDecay = 0.99F;
/// Large enough that rounding in a gradient that is nearly zero moves no weight.
constexpr float kSmall = 1e-4F;

void update_by_adam(Matrix& weight, const Matrix& gradient, OptimizerState& state, std::size_t at,
                    float learning_rate) {
  const auto steps = static_cast<float>(state.steps);
  const float mean_bias = 1 - std::pow(kMeanDecay, steps);
  const float square_bias = 1 - std::pow(kSquareDecay, steps);
  for (std::size_t entry = 0; entry < weight.values.size(); ++entry) {
    const float grad = gradient.values[entry];
    float& mean = state.mean[at].values[entry];
    float& square = state.square[at].values[entry];
    mean = kMeanDecay * mean + (1 - kMeanDecay) * grad;
    square = kSquareDecay * square + (1 - kSquareDecay) * grad * grad;
    weight.values[entry] -=
        learning_rate * (mean / mean_bias) / (std::sqrt(square / square_bias) + kSmall);
  }
}

}  // namespace

void update(std::vector<Matrix>& weights, const std::vector<Matrix>& gradients,
            OptimizerState& state, const OptimizerOptions& options) {
  ++state.steps;
  const bool adam = options.kind == OptimizerOptions::Kind::kAdam;
  for (std::size_t at = 0; at < weights.size(); ++at) {
    if (adam && state.mean.size() <= at) {
      state.mean.emplace_back(weights[at].rows, weights[at].columns);
      state.square.emplace_back(weights[at].rows, weights[at].columns);
    }
    if (adam) {
      update_by_adam(weights[at], gradients[at], state, at, options.learning_rate);
      continue;
    }
    for (std::size_t entry = 0; entry < weights[at].values.size(); ++entry)
      weights[at].values[entry] -= options.learning_rate * gradients[at].values[entry];
  }
}

}  // namespace bubblescope

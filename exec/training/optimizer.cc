// Implements SGD and Adam.
#include "exec/training/optimizer.h"

#include <cmath>

#include "exec/training/stage.h"

namespace bubblescope::exec {

namespace {

constexpr float kMeanDecay = 0.9F;
constexpr float kSquareDecay = 0.99F;
/// Large enough that the rounding of a gradient close to zero does not move a weight.
constexpr float kEpsilon = 1e-4F;

/// Adam's bias corrections after so many steps.
struct Bias {
  explicit Bias(std::int32_t steps)
      : mean(1 - std::pow(kMeanDecay, static_cast<float>(steps))),
        square(1 - std::pow(kSquareDecay, static_cast<float>(steps))) {}

  float mean;
  float square;
};

/// One weight matrix and Adam's moments.
struct AdamMatrix {
  Matrix& weight;
  Matrix& mean;
  Matrix& square;
};

void update_by_adam(const AdamMatrix& adam, const Matrix& gradient, const Bias& bias,
                    float learning_rate) {
  for (std::size_t entry = 0; entry < gradient.values.size(); ++entry) {
    const float grad = gradient.values[entry];
    float& mean = adam.mean.values[entry];
    float& square = adam.square.values[entry];
    mean = kMeanDecay * mean + (1 - kMeanDecay) * grad;
    square = kSquareDecay * square + (1 - kSquareDecay) * grad * grad;
    adam.weight.values[entry] -=
        learning_rate * (mean / bias.mean) / (std::sqrt(square / bias.square) + kEpsilon);
  }
}

void update_by_sgd(Matrix& weight, const Matrix& gradient, float learning_rate) {
  for (std::size_t entry = 0; entry < weight.values.size(); ++entry)
    weight.values[entry] -= learning_rate * gradient.values[entry];
}

}  // namespace

OptimizerOptions usual_optimizer(OptimizerOptions::Kind kind) {
  return {kind, kind == OptimizerOptions::Kind::kAdam ? 0.001F : 0.1F};
}

void update(std::vector<Matrix>& weights, const std::vector<Matrix>& gradients,
            OptimizerState& state, const OptimizerOptions& options) {
  ++state.steps;
  if (options.kind == OptimizerOptions::Kind::kSgd) {
    for (std::size_t at = 0; at < weights.size(); ++at)
      update_by_sgd(weights[at], gradients[at], options.learning_rate);
    return;
  }
  if (state.mean.empty()) {
    state.mean = zeros_like(weights);
    state.square = zeros_like(weights);
  }
  const Bias bias(state.steps);
  for (std::size_t at = 0; at < weights.size(); ++at)
    update_by_adam({weights[at], state.mean[at], state.square[at]}, gradients[at], bias,
                   options.learning_rate);
}

}  // namespace bubblescope::exec

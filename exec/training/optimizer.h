// Updates weights from gradients.
#pragma once

#include <cstdint>
#include <vector>

#include "exec/training/matrix.h"

namespace bubblescope::exec {

struct OptimizerOptions {
  enum class Kind : std::uint8_t { kSgd, kAdam };

  Kind kind = Kind::kSgd;
  float learning_rate = 0.1F;
};

/// Uses a learning rate so small that rounding differences stay small.
OptimizerOptions usual_optimizer(OptimizerOptions::Kind kind);

/// The state of one stage's optimizer.
struct OptimizerState {
  std::int32_t steps = 0;
  std::vector<Matrix> mean;    ///< Adam's first moment; empty before the first step
  std::vector<Matrix> square;  ///< Adam's second moment
};

/// Performs one optimizer step on the weights and the state.
void update(std::vector<Matrix>& weights, const std::vector<Matrix>& gradients,
            OptimizerState& state, const OptimizerOptions& options);

}  // namespace bubblescope::exec

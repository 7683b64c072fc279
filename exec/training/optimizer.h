// Updating weights from gradients.
#pragma once

#include <cstdint>
#include <vector>

#include "exec/training/matrix.h"

namespace bubblescope {

struct OptimizerOptions {
  enum class Kind : std::uint8_t { kSgd, kAdam };

  Kind kind = Kind::kSgd;
  float learning_rate = 0.1F;
};

/// With a rate at which training is calm: what rounding makes different stays small.
OptimizerOptions usual_optimizer(OptimizerOptions::Kind kind);

/// The state of one stage's optimizer.
struct OptimizerState {
  std::int32_t steps = 0;
  std::vector<Matrix> mean;    ///< Adam: of gradients; empty before the first step
  std::vector<Matrix> square;  ///< Adam: of squared gradients
};

/// One step: the weights and the state change.
void update(std::vector<Matrix>& weights, const std::vector<Matrix>& gradients,
            OptimizerState& state, const OptimizerOptions& options);

}  // namespace bubblescope

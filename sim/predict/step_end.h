// The end of a model's step: what reduces its gradients and updates its weights.
#pragma once

#include <optional>

#include "sim/ir/schedule.h"
#include "sim/ir/update.h"

namespace bubblescope::inline sim {

/// The end of a model's step. Each choice that is left out is made as is usual in training
/// (choose_model_update), whatever the other one is.
struct StepEnd {
  std::optional<OptimizerMode> optimizer = {};
  std::optional<GradReduction> reduction = {};
};

/// The usual end of a model's step, with the choices of `end` in it: gradients are reduced beside
/// compute, and optimizer steps wait for the norm. Without flushes each rank steps independently,
/// as in Megatron-LM with --overlap-grad-reduce.
UpdateOptions choose_model_update(const Schedule& schedule, const StepEnd& end = {});

}  // namespace bubblescope::inline sim

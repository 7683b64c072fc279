// Kernels that draw weights, and update them from gradients. kernels.h describes each.
#pragma once

#include "exec/gpu/device/dtype.cuh"
#include "exec/gpu/device/entries.cuh"
#include "exec/gpu/kernels.h"
#include "exec/training/draw_entry.h"

namespace bubblescope::exec {

/// Either `weights` or `copy` may be null.
template <class Value>
__global__ void draw_kernel(float* weights, Value* copy, std::uint64_t key, float scale,
                            float offset, std::int64_t count) {
  for (std::int64_t at = first_entry(); at < count; at += entry_step()) {
    const float value = offset + scale * draw_entry(key, static_cast<std::uint64_t>(at));
    if (weights != nullptr) weights[at] = value;
    if (copy != nullptr) copy[at] = from_float<Value>(value);
  }
}

template <class Value>
__global__ void sgd_kernel(float* weights, Value* copy, const float* grads, float rate,
                           std::int64_t count) {
  for (std::int64_t at = first_entry(); at < count; at += entry_step()) {
    weights[at] -= rate * grads[at];
    if (copy != nullptr) copy[at] = from_float<Value>(weights[at]);
  }
}

__global__ inline void adam_step_kernel(float* steps) {
  if (first_entry() != 0) return;
  steps[0] += 1;
  steps[1] = 1 - powf(kAdamMeanDecay, steps[0]);
  steps[2] = 1 - powf(kAdamSquareDecay, steps[0]);
}

/// Adam's moments, and the bias corrections that adam_step_kernel computes.
struct AdamState {
  float* mean;
  float* square;
  const float* steps;
};

template <class Value>
__global__ void adam_kernel(float* weights, Value* copy, const float* grads, AdamState state,
                            float rate, std::int64_t count) {
  const float mean_bias = state.steps[1];
  const float square_bias = state.steps[2];
  for (std::int64_t at = first_entry(); at < count; at += entry_step()) {
    const float grad = grads[at];
    const float mean = kAdamMeanDecay * state.mean[at] + (1 - kAdamMeanDecay) * grad;
    const float square = kAdamSquareDecay * state.square[at] + (1 - kAdamSquareDecay) * grad * grad;
    state.mean[at] = mean;
    state.square[at] = square;
    weights[at] -= rate * (mean / mean_bias) / (sqrtf(square / square_bias) + kAdamEpsilon);
    if (copy != nullptr) copy[at] = from_float<Value>(weights[at]);
  }
}

}  // namespace bubblescope::exec

// Kernels that update weights from gradients. kernels.h says what each does.
#pragma once

#include "exec/gpu/entries.cuh"
#include "exec/gpu/kernels.h"
#include "exec/gpu/number.cuh"

namespace bubblescope {

template <class Value>
__global__ void sgd_kernel(float* weights, Value* copy, const float* grads, float rate,
                           std::int64_t count) {
  for (std::int64_t at = first_entry(); at < count; at += entry_step()) {
    weights[at] -= rate * grads[at];
    if (copy != nullptr) copy[at] = from_float<Value>(weights[at]);
  }
}

/// What Adam keeps, and what it is divided by since it began at zero.
struct AdamState {
  float* mean;
  float* square;
  float mean_bias;
  float square_bias;
};

template <class Value>
__global__ void adam_kernel(float* weights, Value* copy, const float* grads, AdamState state,
                            float rate, std::int64_t count) {
  for (std::int64_t at = first_entry(); at < count; at += entry_step()) {
    const float grad = grads[at];
    const float mean = kAdamMeanDecay * state.mean[at] + (1 - kAdamMeanDecay) * grad;
    const float square = kAdamSquareDecay * state.square[at] + (1 - kAdamSquareDecay) * grad * grad;
    state.mean[at] = mean;
    state.square[at] = square;
    weights[at] -=
        rate * (mean / state.mean_bias) / (sqrtf(square / state.square_bias) + kAdamSmall);
    if (copy != nullptr) copy[at] = from_float<Value>(weights[at]);
  }
}

}  // namespace bubblescope

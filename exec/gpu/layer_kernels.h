// The kernels of a transformer's layers: the arguments of each, and what it computes from them.
// Matrices have the launch's rows x columns entries; a `void*` points to entries of the launch's
// dtype, a `float*` to float32 in every launch.
#pragma once

#include <cstdint>

#include "exec/gpu/requests.h"

namespace bubblescope::exec {

/// target[row] = embedding[tokens[row]] + position[row mod period].
struct EmbedArguments {
  void* target;
  const void* embedding;
  const void* position;
  const std::int32_t* tokens;
  std::int64_t period;
};

/// embedding_grad[tokens[row]] += grad[row], position_grad[row mod period] += grad[row].
struct EmbedGradArguments {
  float* embedding_grad;
  float* position_grad;
  const void* grad;
  const std::int32_t* tokens;
  std::int64_t period;
};

/// target = input / root mean square of its row * gain, which is one row.
struct NormArguments {
  void* target;
  const void* input;
  const void* gain;
};

/// target = gradient of the norm's input, plus `added` unless that is null. inverses[row] = the
/// inverse of the row's root mean square.
struct NormGradArguments {
  void* target;
  const void* input;
  const void* gain;
  const void* grad;
  const void* added;
  float* inverses;
};

/// gain_grad[column] = sum over rows of input * inverses[row] * grad.
struct GainGradArguments {
  float* gain_grad;
  const void* input;
  const void* grad;
  const float* inverses;
};

/// In place: row r becomes the softmax of its first columns - period + r mod period + 1 entries,
/// the rest zero.
struct CausalSoftmaxArguments {
  void* scores;
  std::int64_t period;
};

/// In place: the gradient of softmax rows becomes that of their scores.
struct SoftmaxGradArguments {
  void* grad;
  const void* weights;
};

/// target = gelu(input).
struct GeluArguments {
  void* target;
  const void* input;
};

/// target = grad * gelu'(input).
struct GeluGradArguments {
  void* target;
  const void* input;
  const void* grad;
};

/// In place: logits become probabilities. losses[row] = -log of the probability of tokens[row].
struct CrossEntropyArguments {
  void* logits;
  const std::int32_t* tokens;
  float* losses;
};

/// In place: probabilities become the gradient of logits, times scale / rows.
struct CrossEntropyGradArguments {
  void* probabilities;
  const std::int32_t* tokens;
  float scale;
};

/// mixed = causal attention of qkv, which holds queries, keys and values as `grid` says. logs: per
/// query and head, the logarithm of the sum of the exponentials.
struct AttentionArguments {
  void* mixed;
  const void* qkv;
  float* logs;
  BubblescopeAttention grid;
};

/// Adds the gradient of the queries to qkv_grad. dots: per query and head, the dot product of the
/// attention output and its gradient, for the gradient of the keys.
struct QueryGradArguments {
  void* qkv_grad;
  const void* qkv;
  const void* mixed;
  const void* mixed_grad;
  const float* logs;
  float* dots;
  BubblescopeAttention grid;
};

/// Adds the gradients of keys and values to qkv_grad, up to the position of the last query.
struct KeyGradArguments : QueryGradArguments {};

}  // namespace bubblescope::exec

// Our kernels, and the fields of a BubblescopeLaunch that each reads and writes. "Numbers" are
// stored in the dtype of the launch; "floats" are always float32. Matrices have rows x columns
// entries.
#pragma once

#include <cstdint>

namespace bubblescope::exec {

enum class Kernel : std::int32_t {
  /// target[row] = inputs[0][token of row] + inputs[1][row mod period]: numbers; inputs[2]: the
  /// tokens, int32.
  kEmbed,
  /// extra[0][token of row] += inputs[0][row], extra[1][row mod period] += the same: floats;
  /// inputs[0]: numbers; inputs[2]: the tokens.
  kEmbedGrad,
  /// target = inputs[0] / root mean square of its row * inputs[1]: numbers; the gain: numbers.
  kNorm,
  /// target = gradient of the norm's input; inputs: the norm's input, gain, gradient of its output,
  /// and one that is added, or null. extra[0]: one float per row, the inverse of its root mean
  /// square, for kGainGrad.
  kNormGrad,
  /// extra[0][column] = sum over rows of input * inverse * gradient: floats; inputs: the norm's
  /// input, gradient of its output, inverses.
  kGainGrad,
  /// In place on target: row r becomes the softmax of its first columns - period + r mod period + 1
  /// entries, the rest zero.
  kCausalSoftmax,
  /// In place on target, the gradient of softmax rows becomes that of their logits; inputs[0]: the
  /// rows.
  kSoftmaxGrad,
  /// target = gelu(inputs[0]).
  kGelu,
  /// target = inputs[1] * gelu'(inputs[0]).
  kGeluGrad,
  /// In place on target, logits become probabilities; extra[0]: per row, -log of the probability of
  /// its token in inputs[2].
  kCrossEntropy,
  /// In place on target, probabilities become the gradient of logits, times scalars[0] / rows.
  kCrossEntropyGrad,
  /// extra[0][0] = mean of inputs[0] over `columns` floats.
  kMean,
  /// extra[0] += inputs[0]; both have rows * columns floats.
  kAdd,
  /// extra[0] *= scalars[0]; rows * columns floats.
  kScale,
  /// extra[0]: weights, inputs[0]: gradients, floats; target: the weights as numbers, or null.
  /// scalars[0]: learning rate.
  kSgd,
  /// Like kSgd, with extra[1] the first and extra[2] the second moment; inputs[1]: the output of
  /// kAdamStep.
  kAdam,
  /// extra[0]: three floats, the number of updates and the bias corrections of both moments;
  /// advances them to the next update. Runs as one thread on the device, so that it also counts in
  /// a graph.
  kAdamStep,
  /// target = causal attention of inputs[0], which holds queries, keys and values as `attention`
  /// says: numbers; extra[0]: per query and head, the logarithm of the sum of the exponentials.
  kAttention,
  /// Adds the gradient of the queries to target; inputs: queries, keys and values, the attention
  /// output, its gradient, and the logarithms of kAttention. extra[0]: per query and head, the dot
  /// product of the output and its gradient, for kKeyGrad.
  kQueryGrad,
  /// Adds the gradients of keys and values to target, for all positions before the end of the
  /// queries; reads extra[0].
  kKeyGrad,
  /// Entry `at` becomes scalars[1] + scalars[0] * draw_entry(period, at), see draw_entry.h; in
  /// target: numbers, and in extra[0]: floats. Either may be null.
  kDraw,
};
inline constexpr int kKernels = 21;

// Constants of the norm, the GELU and Adam; the same as on the host.
inline constexpr float kNormEpsilon = 1e-5F;
inline constexpr float kGeluSlope = 0.7978845608F;  ///< sqrt(2 / pi)
inline constexpr float kGeluCubic = 0.044715F;
inline constexpr float kAdamMeanDecay = 0.9F;
inline constexpr float kAdamSquareDecay = 0.99F;
inline constexpr float kAdamEpsilon = 1e-4F;

}  // namespace bubblescope::exec

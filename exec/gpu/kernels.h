// Our kernels by name, and what each reads and writes of a BubblescopeLaunch. "Numbers" are stored
// as `number` says, "floats" are always float32. Matrices have rows x columns entries.
#pragma once

#include <cstdint>

namespace bubblescope {

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
  /// extra[0] += inputs[0]: rows * columns floats.
  kAdd,
  /// extra[0] *= scalars[0]: the same.
  kScale,
  /// extra[0]: weights, inputs[0]: gradients, floats; target: the weights as numbers, or null.
  /// scalars[0]: learning rate.
  kSgd,
  /// The same with extra[1] the mean and extra[2] the mean of squares; inputs[1]: what kAdamStep
  /// has made.
  kAdam,
  /// extra[0]: three floats, the number of updates and what Adam's means are divided by, since they
  /// began at zero; they become those of the next update. One thread, so that a graph counts too.
  kAdamStep,
  /// target = causal attention of inputs[0], queries, keys and values, as `attention` says:
  /// numbers;
  /// extra[0]: per asking row and head, the logarithm of the sum of its exponentials.
  kAttention,
  /// Adds to the queries' part of target, the gradient of queries, keys and values; inputs: these,
  /// what they mixed, the gradient of that; [3]: the logarithms. extra[0]: per asking row and head,
  /// its mixed * gradient, for kKeyGrad.
  kQueryGrad,
  /// The same for the keys' and values' parts, of all positions before the end of those asking;
  /// extra[0] is read.
  kKeyGrad,
};
inline constexpr int kKernels = 20;

// What the norm, the gelu and Adam are made with; the same as on the host.
inline constexpr float kNormSmall = 1e-5F;
inline constexpr float kGeluSlope = 0.7978845608F;  ///< sqrt(2 / pi)
inline constexpr float kGeluCubic = 0.044715F;
inline constexpr float kAdamMeanDecay = 0.9F;
inline constexpr float kAdamSquareDecay = 0.99F;
inline constexpr float kAdamSmall = 1e-4F;

}  // namespace bubblescope

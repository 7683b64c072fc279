// The layers of a transformer without weights of their own products: norms, attention, gelu,
// embedding and cross-entropy, each with its gradient.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "exec/training/matrix.h"
#include "exec/training/precision.h"
#include "exec/training/slices.h"

namespace bubblescope {

/// Every row divided by its root mean square.
Matrix normalize(const Matrix& input);

/// Every row times the gain, entry by entry.
Matrix apply_gain(const Matrix& normalized, const Matrix& gain);

/// The gradient of normalize-and-gain's input.
Matrix norm_grad(const Matrix& input, const Matrix& gain, const Matrix& grad);

/// The gradient of the gain: one row.
Matrix gain_grad(const Matrix& input, const Matrix& grad);

/// How queries, keys and values, which have rows of whole sequences, are cut.
struct AttentionShape {
  std::int32_t batch = 1;
  std::int32_t sequence = 1;
  std::int32_t heads = 1;
  std::int32_t head_width = 1;
  std::optional<Positions> queries = std::nullopt;  ///< whose attention it is; empty: everyone's
  Precision precision = Precision::kFloat32;        ///< of everything that is made on the way

  Positions asking() const { return queries.value_or(Positions{0, sequence}); }
};

/// Softmax over the earlier positions of queries times keys: one row per batch, head and asking
/// position.
Matrix attention_weights(const Matrix& qkv, const AttentionShape& shape);

/// Those weights times the values: the rows of the asking positions.
Matrix mix_values(const Matrix& qkv, const Matrix& weights, const AttentionShape& shape);

/// What the asking positions add to the gradient of queries, keys and values of all.
Matrix attention_grad(const Matrix& qkv, const Matrix& weights, const Matrix& mixed_grad,
                      const AttentionShape& shape);

/// x * Phi(x), in the usual approximation by tanh.
Matrix gelu(const Matrix& input);
Matrix gelu_grad(const Matrix& input, const Matrix& grad);

/// Softmax of every row.
Matrix softmax(const Matrix& logits);

/// -log of the probability of each row's target, averaged over the rows.
double cross_entropy(const Matrix& probabilities, const std::vector<std::int32_t>& targets);

/// The gradient of the logits of scale * cross_entropy.
Matrix cross_entropy_grad(const Matrix& probabilities, const std::vector<std::int32_t>& targets,
                          float scale);

}  // namespace bubblescope

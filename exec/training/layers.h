// The layers of a transformer that have no weights of their own to multiply with: norms, attention,
// GELU and cross-entropy, each with its gradient.
#pragma once

#include <cmath>
#include <cstdint>
#include <optional>
#include <vector>

#include "exec/training/matrix.h"
#include "exec/training/precision.h"
#include "exec/training/slices.h"

namespace bubblescope::exec {

/// Divides every row by its root mean square.
Matrix normalize(const Matrix& input);

/// Multiplies every row by the gain, entry by entry.
Matrix apply_gain(const Matrix& normalized, const Matrix& gain);

/// Returns the gradient of the input of apply_gain(normalize(input), gain).
Matrix norm_grad(const Matrix& input, const Matrix& gain, const Matrix& grad);

/// Returns the gradient of `gain` in apply_gain(input, gain), as one row.
Matrix scale_grad(const Matrix& input, const Matrix& grad);

/// Returns the gradient of `gain` in apply_gain(normalize(input), gain), as one row.
Matrix gain_grad(const Matrix& input, const Matrix& grad);

/// The layout of queries, keys and values, which have rows for whole sequences.
struct AttentionShape {
  std::int32_t batch = 1;
  std::int32_t sequence = 1;
  std::int32_t heads = 1;
  std::int32_t head_width = 1;
  std::optional<Positions> queries = std::nullopt;  ///< positions with queries; empty: all
  Precision precision = Precision::kFloat32;        ///< of all intermediate results

  Positions query_positions() const { return queries.value_or(Positions{0, sequence}); }
  /// Returns the factor by which products of queries and keys are scaled.
  float scale() const { return 1 / std::sqrt(static_cast<float>(head_width)); }
};

/// The softmax of queries times keys over the positions up to the query's: one row per batch, head
/// and query.
Matrix attention_weights(const Matrix& qkv, const AttentionShape& shape);

/// The attention output: those weights times the values, one row per query.
Matrix mix_values(const Matrix& qkv, const Matrix& weights, const AttentionShape& shape);

/// Returns the contribution of these queries to the gradient of the queries, keys and values of all
/// positions.
Matrix attention_grad(const Matrix& qkv, const Matrix& weights, const Matrix& mixed_grad,
                      const AttentionShape& shape);

/// Computes x * Phi(x), in the usual tanh approximation.
Matrix gelu(const Matrix& input);
Matrix gelu_grad(const Matrix& input, const Matrix& grad);

/// Applies the softmax to every row.
Matrix softmax(const Matrix& logits);

/// Returns -log of the probability of each row's target, averaged over the rows.
double cross_entropy(const Matrix& probabilities, const std::vector<std::int32_t>& targets);

/// Returns the gradient of scale * cross_entropy with respect to the logits.
Matrix cross_entropy_grad(const Matrix& probabilities, const std::vector<std::int32_t>& targets,
                          float scale);

}  // namespace bubblescope::exec

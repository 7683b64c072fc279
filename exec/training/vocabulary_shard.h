// A shard of the output layer: adjacent columns of the head, for adjacent words of the vocabulary.
// With X the normed output of the last stage, Y = X W its logits, and G the one-hot targets, a
// shard r has the columns Y_r = X W_r. Its softmax needs a maximum m and a sum s over all words; it
// begins with its own, p_r = exp(Y_r - m_r) / s_r, and corrects it once all shards are known:
//
//   m = max m_r,   s = sum of s_r exp(m_r - m),   softmax_r = p_r c_r,   c_r = s_r exp(m_r - m) / s
//
// Algorithm 1 then has the gradients dY_r = softmax_r - G_r, dX = sum of dY_r W_r', dW_r = X' dY_r.
// Algorithm 2 multiplies first: dX = sum of c_r (p_r W_r') - G_r W_r', so that one exchange serves
// the statistics and dX. Yeung et al., "Balancing Pipeline Parallelism with Vocabulary
// Parallelism", 2024.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <tuple>
#include <vector>

#include "exec/runtime/blob.h"
#include "exec/training/transformer.h"
#include "sim/ir/op.h"

namespace bubblescope::exec {

/// Returns the columns of shard `at` of `shards`.
HeadColumns find_shard(std::int32_t vocabulary, std::int32_t at, std::int32_t shards);

/// A shard's part of the softmax of every row: the maximum and the sum over its own words, and
/// the logit of the target, 0 if that is not among them.
struct ShardStatistics {
  Matrix rows;  ///< [row, 3]
};

/// A shard's forward.
struct ShardOutput {
  Matrix probabilities;  ///< p_r
  ShardStatistics statistics;
};

ShardOutput run_shard(const Stage& shard, const Matrix& normed,
                      const std::vector<std::int32_t>& targets);

/// [row]: c of one of the shards.
std::vector<float> find_corrections(const std::vector<ShardStatistics>& all, std::size_t shard);

/// Returns the mean over the rows of -log softmax at the target.
double find_loss(const std::vector<ShardStatistics>& all);

/// dY_r times scale / rows, once all shards are known.
Matrix find_logits_grad(const Stage& shard, Matrix probabilities,
                        const std::vector<float>& corrections,
                        const std::vector<std::int32_t>& targets, float scale);

/// Computes dY_r W_r'.
Matrix pull_back_logits(const Stage& shard, const Matrix& logits_grad);

/// The message that Algorithm 2 sends to the last stage: p_r W_r', G_r W_r' and the statistics,
/// side by side.
Matrix pull_back_early(const Stage& shard, const Matrix& probabilities,
                       const ShardStatistics& statistics, const std::vector<std::int32_t>& targets);

/// dX times scale / rows, from what all shards sent.
Matrix combine_early(const std::vector<Matrix>& sent, std::int32_t width, float scale);

/// The columns that pull_back_early() returns.
inline std::int32_t early_columns(std::int32_t width) { return 2 * width + 3; }

/// The statistics of the shards that this process knows. All functions are thread-safe.
class ShardExchange {
 public:
  void put(const Op& op, ShardStatistics statistics);
  /// Throws Error if the shard has not run its forward.
  ShardStatistics get(const Op& op) const;
  void clear();

  /// The statistics of a shard, for shards of other processes: with its forward, and with the input
  /// gradient that may follow it. Empty for other ops.
  Blob pack(const Op& op) const;

 private:
  using Place = std::tuple<std::int32_t, std::int32_t, std::int16_t>;

  mutable std::mutex mutex_;
  std::map<Place, ShardStatistics> known_;
};

}  // namespace bubblescope::exec

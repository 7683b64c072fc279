// Implements the passes of a shard.
#include "exec/training/vocabulary_shard.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "exec/training/layers.h"
#include "exec/training/matrix_blob.h"
#include "sim/ir/error.h"

namespace bubblescope::exec {

namespace {

enum Column : std::int32_t { kMaximum, kSum, kTarget, kColumns };

Matrix keep(const Stage& shard, Matrix computed) {
  return stored(std::move(computed), shard.shape.precision);
}

/// The shard's own column of a word; a negative number or one past the end if it has none.
std::int32_t column_of(const Stage& shard, std::int32_t word) { return word - shard.shard->begin; }

bool has(const Stage& shard, std::int32_t column) {
  return column >= 0 && column < shard.shard->count;
}

}  // namespace

HeadColumns find_shard(std::int32_t vocabulary, std::int32_t at, std::int32_t shards) {
  const auto begin = [&](std::int64_t shard) {
    return static_cast<std::int32_t>(shard * vocabulary / shards);
  };
  return {begin(at), begin(at + 1) - begin(at)};
}

ShardOutput run_shard(const Stage& shard, const Matrix& normed,
                      const std::vector<std::int32_t>& targets) {
  const Matrix logits =
      keep(shard, product(whole(normed), whole(keep(shard, shard.weights.front()))));
  ShardOutput output{softmax(logits), {Matrix(logits.rows, kColumns)}};
  for (std::int32_t row = 0; row < logits.rows; ++row) {
    const float* const entries = logits.row(row);
    float* const known = output.statistics.rows.row(row);
    known[kMaximum] = *std::max_element(entries, entries + logits.columns);
    for (std::int32_t column = 0; column < logits.columns; ++column)
      known[kSum] += std::exp(entries[column] - known[kMaximum]);
    const std::int32_t target = column_of(shard, targets[static_cast<std::size_t>(row)]);
    if (has(shard, target)) known[kTarget] = entries[target];
  }
  output.probabilities = keep(shard, std::move(output.probabilities));
  return output;
}

namespace {

/// The maximum and the sum over all words, in one row.
struct WholeSoftmax {
  float maximum = 0;
  float sum = 0;
};

WholeSoftmax combine(const std::vector<ShardStatistics>& all, std::int32_t row) {
  WholeSoftmax softmax{all.front().rows.row(row)[kMaximum], 0};
  for (const ShardStatistics& one : all)
    softmax.maximum = std::max(softmax.maximum, one.rows.row(row)[kMaximum]);
  for (const ShardStatistics& one : all)
    softmax.sum +=
        one.rows.row(row)[kSum] * std::exp(one.rows.row(row)[kMaximum] - softmax.maximum);
  return softmax;
}

}  // namespace

std::vector<float> find_corrections(const std::vector<ShardStatistics>& all, std::size_t shard) {
  const Matrix& own = all[shard].rows;
  std::vector<float> corrections;
  for (std::int32_t row = 0; row < own.rows; ++row) {
    const WholeSoftmax softmax = combine(all, row);
    corrections.push_back(own.row(row)[kSum] * std::exp(own.row(row)[kMaximum] - softmax.maximum) /
                          softmax.sum);
  }
  return corrections;
}

double find_loss(const std::vector<ShardStatistics>& all) {
  const std::int32_t rows = all.front().rows.rows;
  double loss = 0;
  for (std::int32_t row = 0; row < rows; ++row) {
    const WholeSoftmax softmax = combine(all, row);
    loss += double{softmax.maximum} + std::log(double{softmax.sum});
    for (const ShardStatistics& one : all) loss -= one.rows.row(row)[kTarget];
  }
  return loss / rows;
}

Matrix find_logits_grad(const Stage& shard, Matrix probabilities,
                        const std::vector<float>& corrections,
                        const std::vector<std::int32_t>& targets, float scale) {
  Matrix grad = std::move(probabilities);
  for (std::int32_t row = 0; row < grad.rows; ++row) {
    const auto at = static_cast<std::size_t>(row);
    for (std::int32_t column = 0; column < grad.columns; ++column)
      grad.row(row)[column] *= corrections[at];
    const std::int32_t target = column_of(shard, targets[at]);
    if (has(shard, target)) grad.row(row)[target] -= 1;
    for (std::int32_t column = 0; column < grad.columns; ++column)
      grad.row(row)[column] *= scale / static_cast<float>(grad.rows);
  }
  return keep(shard, std::move(grad));
}

Matrix pull_back_logits(const Stage& shard, const Matrix& logits_grad) {
  return keep(shard,
              product(whole(logits_grad), transposed(whole(keep(shard, shard.weights.front())))));
}

Matrix pull_back_early(const Stage& shard, const Matrix& probabilities,
                       const ShardStatistics& statistics,
                       const std::vector<std::int32_t>& targets) {
  const Matrix mean = pull_back_logits(shard, probabilities);
  const Matrix head = keep(shard, shard.weights.front());
  Matrix sent(mean.rows, early_columns(mean.columns));
  for (std::int32_t row = 0; row < mean.rows; ++row) {
    float* const to = sent.row(row);
    std::copy_n(mean.row(row), mean.columns, to);
    const std::int32_t target = column_of(shard, targets[static_cast<std::size_t>(row)]);
    for (std::int32_t column = 0; has(shard, target) && column < mean.columns; ++column)
      to[mean.columns + column] = head.row(column)[target];
    std::copy_n(statistics.rows.row(row), static_cast<std::ptrdiff_t>(kColumns),
                to + 2 * std::ptrdiff_t{mean.columns});
  }
  return sent;
}

Matrix combine_early(const std::vector<Matrix>& sent, std::int32_t width, float scale) {
  const std::int32_t rows = sent.front().rows;
  std::vector<ShardStatistics> all;
  for (const Matrix& one : sent) {
    ShardStatistics& statistics = all.emplace_back(ShardStatistics{Matrix(rows, kColumns)});
    for (std::int32_t row = 0; row < rows; ++row)
      std::copy_n(one.row(row) + 2 * std::ptrdiff_t{width}, static_cast<std::ptrdiff_t>(kColumns),
                  statistics.rows.row(row));
  }
  Matrix grad(rows, width);
  for (std::size_t shard = 0; shard < sent.size(); ++shard) {
    const std::vector<float> corrections = find_corrections(all, shard);
    for (std::int32_t row = 0; row < rows; ++row) {
      const float* const from = sent[shard].row(row);
      for (std::int32_t column = 0; column < width; ++column)
        grad.row(row)[column] +=
            corrections[static_cast<std::size_t>(row)] * from[column] - from[width + column];
    }
  }
  for (float& value : grad.values) value *= scale / static_cast<float>(rows);
  return grad;
}

void ShardExchange::put(const Op& op, ShardStatistics statistics) {
  const std::lock_guard lock(mutex_);
  known_[{op.stage, op.microbatch, op.slice}] = std::move(statistics);
}

ShardStatistics ShardExchange::get(const Op& op) const {
  const std::lock_guard lock(mutex_);
  const auto found = known_.find({op.stage, op.microbatch, op.slice});
  if (found == known_.end())
    throw Error(Fault::kProblem,
                "the shards of the output layer do not wait for " +
                    to_string(Op{op.stage, op.microbatch, op.slice}) +
                    ", whose maxima and sums they need; add an after edge to their backwards");
  return found->second;
}

Blob ShardExchange::pack(const Op& op) const {
  if (op.kind != OpKind::kForward && op.kind != OpKind::kInputGrad) return Blob();
  BlobWriter writer;
  write_matrix(writer, get(op).rows);
  return writer.take();
}

void ShardExchange::clear() {
  const std::lock_guard lock(mutex_);
  known_.clear();
}

}  // namespace bubblescope::exec

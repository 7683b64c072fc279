// A cost tensor: one value per (stage, micro-batch, slice), such as the time of an op or the bytes
// of a message. A stage whose micro-batches all have the same values stores them once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "sim/ir/op.h"

namespace bubblescope::inline sim {

template <class Value>
class CostTensor {
 public:
  CostTensor() = default;  ///< no values at all
  explicit CostTensor(std::int32_t slices) : slices_(slices) {}

  /// Appends the values of the next stage: those of its slices, if all micro-batches have the same,
  /// or [microbatch * slices + slice].
  void add_stage(std::span<const Value> values) {
    const auto count = static_cast<std::int32_t>(values.size()) / slices_;
    rows_.push_back({static_cast<std::uint32_t>(values_.size()), count > 1 ? slices_ : 0, count});
    values_.insert(values_.end(), values.begin(), values.end());
  }

  bool empty() const { return rows_.empty(); }
  std::int32_t stages() const { return static_cast<std::int32_t>(rows_.size()); }
  std::int32_t slices() const { return slices_; }

  /// The values of a stage, as add_stage() takes them.
  std::span<const Value> of_stage(std::int32_t stage) const {
    const auto at = static_cast<std::size_t>(stage);
    const std::size_t begin = rows_[at].begin;
    const std::size_t end = at + 1 < rows_.size() ? rows_[at + 1].begin : values_.size();
    return std::span(values_).subspan(begin, end - begin);
  }

  /// Whether there is a value for an op's stage, micro-batch and slice.
  bool covers(const Op& op) const {
    return op.stage < stages() && op.slice < slices_ &&
           (rows_[op.stage].stride == 0 || op.microbatch < rows_[op.stage].microbatches);
  }

  /// The value of an op's stage, micro-batch and slice, which the tensor must cover.
  const Value& operator()(const Op& op) const {
    const Row& row = rows_[op.stage];
    return values_[static_cast<std::size_t>(row.begin + std::int64_t{row.stride} * op.microbatch +
                                            op.slice)];
  }

 private:
  struct Row {
    std::uint32_t begin = 0;
    std::int32_t stride = 0;  ///< from one micro-batch to the next; 0 if they share their values
    std::int32_t microbatches = 1;
  };

  std::int32_t slices_ = 1;
  std::vector<Row> rows_;  ///< [stage]
  std::vector<Value> values_;
};

}  // namespace bubblescope::inline sim

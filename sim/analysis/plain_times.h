// The times of a plain step's ops and messages, which may differ by micro-batch.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "sim/ir/plain_ops.h"
#include "sim/ir/schedule.h"
#include "sim/model/cost_model.h"

namespace bubblescope::inline sim {

/// Refers to the CostModel, which must outlive it and cover the schedule (covers_plain_step()).
class PlainTimes {
 public:
  PlainTimes(const Schedule& schedule, const CostModel& costs);
  PlainTimes(const PlainTimes&) = delete;
  PlainTimes& operator=(const PlainTimes&) = delete;

  Nanos of(OpKind kind, std::int32_t stage, std::int32_t microbatch) const {
    constexpr std::array<Nanos StageCost::*, kPlainKinds> kTimes = {
        &StageCost::forward, &StageCost::backward, &StageCost::input_grad, &StageCost::weight_grad};
    return ops_[static_cast<std::size_t>(stage)].at(microbatch).*
           kTimes[static_cast<std::size_t>(kind)];
  }
  Nanos of(const Op& op) const { return of(op.kind, op.stage, op.microbatch); }

  /// How long an activation travels that a stage sends to the next one; 0 on the same rank.
  Nanos activation(std::int32_t stage, std::int32_t microbatch) const {
    return messages_[static_cast<std::size_t>(stage)].at(microbatch).forward;
  }
  /// How long a gradient travels that a stage sends to the previous one.
  Nanos gradient(std::int32_t stage, std::int32_t microbatch) const {
    return messages_[static_cast<std::size_t>(stage)].at(microbatch).backward;
  }

 private:
  /// The values of a stage's micro-batches, or the one that all of them share.
  template <class Value>
  struct Row {
    const Value* first = nullptr;
    std::size_t stride = 0;

    const Value& at(std::int32_t microbatch) const {
      return first[stride * static_cast<std::size_t>(microbatch)];
    }
  };
  template <class Value>
  static Row<Value> row_of(const CostTensor<Value>& tensor, std::int32_t stage);

  std::vector<Row<StageCost>> ops_;         ///< [stage]
  std::vector<Row<MessageCost>> messages_;  ///< [stage]
  std::vector<MessageCost> same_messages_;  ///< [stage], where all micro-batches have the same
};

/// Whether a tensor has a value for each micro-batch of each stage, or none at all.
template <class Value>
bool covers_microbatches(const CostTensor<Value>& tensor, const Schedule& schedule) {
  if (tensor.empty()) return true;
  if (tensor.slices() != 1 || tensor.stages() < schedule.stages()) return false;
  for (std::int32_t stage = 0; stage < schedule.stages(); ++stage)
    if (!tensor.covers(forward(stage, schedule.shape.microbatches - 1))) return false;
  return true;
}

/// Whether a CostModel has times for every op of a schedule with a plain frame, and nothing else
/// that takes time.
bool covers_plain_step(const CostModel& costs, const Schedule& schedule);

}  // namespace bubblescope::inline sim

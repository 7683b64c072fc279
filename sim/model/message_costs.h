// Values of the messages between stages, for every micro-batch and slice.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "sim/ir/needs.h"
#include "sim/model/cost_tensor.h"

namespace bubblescope::inline sim {

/// One message between two stages, in either direction.
struct StageMessage {
  std::int32_t from = 0;  ///< the sending rank
  std::int32_t to = 0;
  Op producer;          ///< on the earlier of the two stages, whichever sends
  bool forward = true;  ///< carries an activation; else a gradient
  std::int32_t sending_stage = 0;
};

/// Returns the SEND of the message.
inline Op send_of(const StageMessage& message) {
  return {message.sending_stage, message.producer.microbatch, message.producer.slice,
          message.forward ? OpKind::kSendForward : OpKind::kSendBackward};
}

/// In a stage graph a value may go to several ranks. All of its messages have the time of the
/// slowest, and the size of the largest.
template <class Quantity>
void raise_to(Quantity& known, Quantity of_message) {
  known = std::max(known, of_message);
}

/// Makes a tensor with the value of every stage's messages; `set(value, message)` sets one of them.
/// Ops that send nothing to another rank keep Value{}.
template <class Value, class Set>
CostTensor<Value> make_message_tensor(const Schedule& schedule, bool by_microbatch, Set set) {
  const Shape& shape = schedule.shape;
  CostTensor<Value> tensor(shape.slices);
  const std::int32_t microbatches =
      by_microbatch || !schedule.replicas_of_stage.empty() ? shape.microbatches : 1;
  const auto slices = static_cast<std::size_t>(shape.slices);
  std::vector<Value> values;
  for (std::int32_t stage = 0; stage < schedule.stages(); ++stage) {
    values.assign(static_cast<std::size_t>(microbatches) * slices, Value{});
    const auto add = [&](bool forward, std::int32_t other) {
      for (std::size_t at = 0; at < values.size(); ++at) {
        const auto microbatch = static_cast<std::int32_t>(at / slices);
        const auto slice = static_cast<std::int16_t>(at % slices);
        const std::int32_t from = schedule.rank_of(stage, microbatch);
        const std::int32_t to = schedule.rank_of(other, microbatch);
        if (from == to) continue;
        set(values[at],
            StageMessage{from, to, Op{std::min(stage, other), microbatch, slice}, forward, stage});
      }
    };
    for_each_reader(schedule, stage, [&](std::int32_t reader) { add(true, reader); });
    for_each_input(schedule, stage, [&](std::int32_t input) { add(false, input); });
    tensor.add_stage(values);
  }
  return tensor;
}

}  // namespace bubblescope::inline sim

// Data dependencies that cross ranks, and an index of all values that a schedule's ops produce.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "sim/ir/needs.h"
#include "sim/ir/schedule.h"

namespace bubblescope::inline sim {

/// Whether an op is fused with the forward that produces the value it needs
/// (Schedule::fused_forwards).
bool are_fused(const Schedule& schedule, const Value& value, const Op& op);

/// Whether a message carries an activation; else it carries a gradient. A WAIT_SEND counts as its
/// SEND.
bool carries_activation(OpKind message);

/// Returns the RECV that brings the input of a forward or a backward; nullopt for other ops.
std::optional<OpKind> find_receive(OpKind op);

/// The value that a posted SEND or RECV carries; empty if there can be no such message. A SEND_F of
/// stage s and a RECV_F of stage s+1 carry the activations of stage s, a SEND_B of stage s and a
/// RECV_B of stage s-1 its gradient. In a stage graph a RECV has the stage whose value it receives.
/// A WAIT_SEND counts as its SEND.
std::optional<Value> find_carried_value(const Schedule& schedule, const Op& message);

/// The two ends of the message that carries an activation or a gradient: the SEND of the stage that
/// produces it, and the RECV of the stage that needs it.
Op make_send(const Value& value);
Op make_receive(const Schedule& schedule, const Value& value, std::int32_t receiving_stage);

/// The other stage that needs a value, the first if there are several; empty at the end of the
/// pipeline and for values that only their own stage needs.
std::optional<std::int32_t> receiving_stage(const Schedule& schedule, const Value& value);

/// The ranks to which a value is sent, one message to each: those of the stages that need it, in
/// their order, without the rank that produces it.
std::vector<std::int32_t> receiving_ranks(const Schedule& schedule, const Value& value);

/// Numbers all values that a schedule's ops produce, from 0 and without gaps: an index for flat
/// tables.
class ValueIndex {
 public:
  explicit ValueIndex(const Schedule& schedule)
      : stages_(schedule.stages()),
        microbatches_(schedule.shape.microbatches),
        slices_(schedule.shape.slices) {}

  std::size_t size() const { return kValueKinds * row(stages_); }
  std::size_t operator()(const Value& value) const {
    const std::size_t stage_row = static_cast<std::size_t>(value.value_kind) * row(stages_);
    return stage_row + row(value.stage) +
           static_cast<std::size_t>(std::int64_t{value.microbatch} * slices_ + value.slice);
  }
  std::size_t operator()(const Op& op) const { return (*this)(value_of(op)); }

 private:
  std::size_t row(std::int64_t stages) const {
    return static_cast<std::size_t>(stages * microbatches_ * slices_);
  }

  std::int64_t stages_;
  std::int64_t microbatches_;
  std::int64_t slices_;
};

}  // namespace bubblescope::inline sim

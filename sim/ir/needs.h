// The inputs of every op: the only statement of a training step's data flow.
//
//   F(s,i) needs the activation of F(s-1,i); B(s,i) needs the activation of F(s,i) and the gradient
//   of B(s+1,i). In a stage graph, F(s,i) needs those of all inputs of s, B(s,i) those of all
//   readers of s.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "sim/ir/schedule.h"
#include "sim/ir/value.h"

namespace bubblescope::inline sim {

/// Whether pipelines begin or end elsewhere than at the first and last stage of the placement.
inline bool has_inner_ends(const Schedule& schedule) {
  return schedule.pipelines > 1 || schedule.side_stages > 0 || !schedule.graph.is_chain();
}

/// Called several times for every op, so it divides only if there are several pipelines.
inline bool begins_pipeline(const Schedule& schedule, std::int32_t stage) {
  return stage == 0 || (has_inner_ends(schedule) && schedule.is_first(stage));
}
inline bool ends_pipeline(const Schedule& schedule, std::int32_t stage) {
  return stage + 1 == schedule.stages() || (has_inner_ends(schedule) && schedule.is_last(stage));
}

/// Calls visit(stage) for each stage whose activation a stage reads.
template <class Visit>
void for_each_input(const Schedule& schedule, std::int32_t stage, const Visit& visit) {
  if (schedule.graph.is_chain()) {
    if (!begins_pipeline(schedule, stage)) visit(stage - 1);
  } else {
    for (const std::int32_t input : schedule.graph.inputs(stage)) visit(input);
  }
}

/// Calls visit(stage) for each stage that reads the activation of a stage, and so returns a
/// gradient.
template <class Visit>
void for_each_reader(const Schedule& schedule, std::int32_t stage, const Visit& visit) {
  if (schedule.graph.is_chain()) {
    if (!ends_pipeline(schedule, stage)) visit(stage + 1);
  } else {
    for (const std::int32_t reader : schedule.graph.readers(stage)) visit(reader);
  }
}

/// Calls visit(Value) for each value that an op of a rank's order needs before it can run:
///   F(s,i,q)  the activations of F(s-1,i,q) and, for attention, of F(s,i,q-1)
///   B, I      its own F, the gradient of stage s+1 and of slice q+1; its R or LOAD, if there is
///             one
///   W         its own gradient
///   R         its own F; its LOAD, if there is one
///   EVICT     its own F
///   LOAD      its own EVICT
/// R and LOAD are left to the caller, who knows whether the schedule has them.
template <class Visit>
void for_each_need(const Schedule& schedule, const Op& op, const Visit& visit) {
  const auto stage = op.stage;  // clang 14 cannot capture structured bindings
  const auto microbatch = op.microbatch;
  const auto slice = op.slice;
  const OpKind kind = op.kind;
  const auto other = [](std::int32_t number) { return static_cast<std::int16_t>(number); };
  if (kind == OpKind::kForward) {
    for_each_input(schedule, stage, [&](std::int32_t input) {
      visit(Value{ValueKind::kActivation, input, microbatch, slice});
    });
    if (slice > 0) visit(Value{ValueKind::kActivation, stage, microbatch, other(slice - 1)});
  } else if (gives_input_grad(kind)) {
    visit(Value{ValueKind::kActivation, stage, microbatch, slice});
    for_each_reader(schedule, stage, [&](std::int32_t reader) {
      visit(Value{ValueKind::kGradient, reader, microbatch, slice});
    });
    if (slice + 1 < schedule.shape.slices)
      visit(Value{ValueKind::kGradient, stage, microbatch, other(slice + 1)});
  } else if (kind == OpKind::kWeightGrad) {
    visit(Value{ValueKind::kGradient, stage, microbatch, slice});
  } else {
    const bool loads = kind == OpKind::kLoad;
    visit(Value{loads ? ValueKind::kEvicted : ValueKind::kActivation, stage, microbatch, slice});
  }
}

/// The values that one op needs. In a chain they are at most four, and take no memory of their own.
class Needs {
 public:
  void add(Value value) {
    if (count_ == few_.size()) many_.assign(few_.begin(), few_.end());
    if (count_ < few_.size())
      few_[count_] = value;
    else
      many_.push_back(value);
    ++count_;
  }
  const Value* begin() const { return many_.empty() ? few_.data() : many_.data(); }
  const Value* end() const { return begin() + count_; }

 private:
  std::array<Value, 4> few_;
  std::vector<Value> many_;  ///< all of them, if they are more
  std::size_t count_ = 0;
};

inline Needs collect_needs(const Schedule& schedule, const Op& op) {
  Needs needs;
  for_each_need(schedule, op, [&](const Value& value) { needs.add(value); });
  return needs;
}

}  // namespace bubblescope::inline sim

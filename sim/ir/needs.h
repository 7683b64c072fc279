// The inputs of every op: the only statement of a training step's data flow.
//
//   F(s,i) needs the activation of F(s-1,i); B(s,i) needs the activation of F(s,i) and the gradient
//   of B(s+1,i)
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "sim/ir/schedule.h"

namespace bubblescope::inline sim {

/// The kind of value that an op produces. A full backward and an input gradient produce the same:
/// the gradient that the previous stage waits for.
enum class ValueKind : std::uint8_t {
  kActivation,
  kGradient,
  kWeightGradient,
  kRecomputed,
  kEvicted,
  kLoaded,
};
inline constexpr int kValueKinds = 6;

/// For kinds that occur in orders.
inline ValueKind value_kind_of(OpKind kind) {
  if (kind == OpKind::kForward) return ValueKind::kActivation;
  if (kind == OpKind::kWeightGrad) return ValueKind::kWeightGradient;
  if (kind == OpKind::kRecompute) return ValueKind::kRecomputed;
  if (kind == OpKind::kEvict) return ValueKind::kEvicted;
  return kind == OpKind::kLoad ? ValueKind::kLoaded : ValueKind::kGradient;
}

/// One value: its kind, and the stage, micro-batch and slice that it belongs to.
struct Value {
  ValueKind value_kind = ValueKind::kActivation;
  std::int32_t stage = 0;
  std::int32_t microbatch = 0;
  std::int16_t slice = 0;
};

/// The value that a compute op produces.
inline Value value_of(const Op& op) {
  return {value_kind_of(op.kind), op.stage, op.microbatch, op.slice};
}

/// Whether pipelines begin or end elsewhere than at the first and last stage of the placement.
inline bool has_inner_ends(const Schedule& schedule) {
  return schedule.pipelines > 1 || schedule.side_stages > 0;
}

/// Called several times for every op, so it divides only if there are several pipelines.
inline bool begins_pipeline(const Schedule& schedule, std::int32_t stage) {
  return stage == 0 || (has_inner_ends(schedule) && schedule.is_first(stage));
}
inline bool ends_pipeline(const Schedule& schedule, std::int32_t stage) {
  return stage + 1 == schedule.stages() || (has_inner_ends(schedule) && schedule.is_last(stage));
}

/// Calls visit(Made) for each value that an op of a rank's order needs before it can run:
///   F(s,i,q)  the activations of F(s-1,i,q) and, for attention, of F(s,i,q-1)
///   B, I      its own F, the gradient of stage s+1 and of slice q+1; its R or LOAD, if there is
///   one W         its own gradient R         its own F; its LOAD, if there is one EVICT     its
///   own F LOAD      its own EVICT
/// R and LOAD are left to the caller, who knows whether the schedule has them.
template <class Visit>
void for_each_need(const Schedule& schedule, const Op& op, const Visit& visit) {
  const auto [stage, microbatch, slice, kind, pairing] = op;
  const auto other = [](std::int32_t number) { return static_cast<std::int16_t>(number); };
  if (kind == OpKind::kForward) {
    if (!begins_pipeline(schedule, stage))
      visit(Value{ValueKind::kActivation, stage - 1, microbatch, slice});
    if (slice > 0) visit(Value{ValueKind::kActivation, stage, microbatch, other(slice - 1)});
  } else if (gives_input_grad(kind)) {
    visit(Value{ValueKind::kActivation, stage, microbatch, slice});
    if (!ends_pipeline(schedule, stage))
      visit(Value{ValueKind::kGradient, stage + 1, microbatch, slice});
    if (slice + 1 < schedule.shape.slices)
      visit(Value{ValueKind::kGradient, stage, microbatch, other(slice + 1)});
  } else if (kind == OpKind::kWeightGrad) {
    visit(Value{ValueKind::kGradient, stage, microbatch, slice});
  } else {
    const bool loads = kind == OpKind::kLoad;
    visit(Value{loads ? ValueKind::kEvicted : ValueKind::kActivation, stage, microbatch, slice});
  }
}

/// The values that one op needs: at most four.
class Needs {
 public:
  void add(Value value) { values_[count_++] = value; }
  const Value* begin() const { return values_.data(); }
  const Value* end() const { return values_.data() + count_; }

 private:
  std::array<Value, 4> values_;
  std::size_t count_ = 0;
};

inline Needs collect_needs(const Schedule& schedule, const Op& op) {
  Needs needs;
  for_each_need(schedule, op, [&](const Value& value) { needs.add(value); });
  return needs;
}

}  // namespace bubblescope::inline sim

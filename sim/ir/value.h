// The values that ops produce, and others need.
#pragma once

#include <cstdint>

#include "sim/ir/op.h"

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

/// The kind of value that an op produces; `kind` must be one that occurs in orders.
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

}  // namespace bubblescope::inline sim

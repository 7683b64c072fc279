// What every op waits for. The one statement of the data flow of a training step; validate, lower
// and the message lists all ask here.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "sim/ir/schedule.h"

namespace bubblescope {

/// What an op makes. A full backward and an input gradient make the same thing: the gradient that
/// the previous stage waits for.
enum class Product : std::uint8_t {
  kActivation,
  kGradient,
  kWeightGradient,
  kRecomputed,
  kEvicted,
  kLoaded,
};
inline constexpr int kProducts = 6;

/// Of a kind that stands in orders.
inline Product product_of(OpKind kind) {
  if (kind == OpKind::kForward) return Product::kActivation;
  if (kind == OpKind::kWeightGrad) return Product::kWeightGradient;
  if (kind == OpKind::kRecompute) return Product::kRecomputed;
  if (kind == OpKind::kEvict) return Product::kEvicted;
  return kind == OpKind::kLoad ? Product::kLoaded : Product::kGradient;
}

/// One thing that was made, and where in the model.
struct Made {
  Product product = Product::kActivation;
  std::int32_t stage = 0;
  std::int32_t microbatch = 0;
  std::int16_t slice = 0;
};

/// The few things that one op needs.
class Needs {
 public:
  void add(Made made) { made_[count_++] = made; }
  const Made* begin() const { return made_.data(); }
  const Made* end() const { return made_.data() + count_; }

 private:
  std::array<Made, 4> made_;
  std::size_t count_ = 0;
};

/// What an op of a rank's order needs before it can run:
///   F(s,i,q)  the activations of F(s-1,i,q) and, for attention, of F(s,i,q-1)
///   B, I      its own F, the gradient of stage s+1 and of slice q+1; its R or LOAD, where one is
///   W         its own gradient
///   R         its own F; its LOAD, where one is
///   EVICT     its own F
///   LOAD      its own EVICT
/// R and LOAD are left to the caller, who knows whether the schedule has them.
Needs needs_of(const Schedule& schedule, const Op& op);

/// Whether an op runs as one with the forward that makes what it needs (Schedule::joint_forwards).
bool are_joint(const Schedule& schedule, const Made& made, const Op& op);

/// What a posted SEND or RECV carries; nothing if no such message can be. A SEND_F of stage s and a
/// RECV_F of stage s+1 carry the activations of stage s, a SEND_B of stage s and a RECV_B of stage
/// s-1 its gradient.
std::optional<Made> carried_by(const Schedule& schedule, const Op& message);

/// What a compute op makes.
inline Made made_by(const Op& op) {
  return {product_of(op.kind), op.stage, op.microbatch, op.slice};
}

/// The two ends of the message that carries an activation or a gradient: the SEND of its maker, and
/// the RECV of the stage that needs it.
Op send_of(const Made& made);
Op receive_of(const Made& made, std::int32_t receiving_stage);

/// The stage that needs what another stage made; nothing at the end of its pipeline, and for what
/// only its own stage needs.
std::optional<std::int32_t> receiving_stage(const Schedule& schedule, const Made& made);

/// Numbers everything that a schedule's ops make from 0, without gaps: an index for flat tables.
class MadeIndex {
 public:
  explicit MadeIndex(const Schedule& schedule)
      : stages_(schedule.stages()),
        microbatches_(schedule.shape.microbatches),
        slices_(schedule.shape.slices) {}

  std::size_t size() const { return kProducts * row(stages_); }
  std::size_t operator()(const Made& made) const {
    const std::size_t stage_row = static_cast<std::size_t>(made.product) * row(stages_);
    return stage_row + row(made.stage) +
           static_cast<std::size_t>(std::int64_t{made.microbatch} * slices_ + made.slice);
  }
  std::size_t operator()(const Op& op) const { return (*this)(made_by(op)); }

 private:
  std::size_t row(std::int64_t stages) const {
    return static_cast<std::size_t>(stages * microbatches_ * slices_);
  }

  std::int64_t stages_;
  std::int64_t microbatches_;
  std::int64_t slices_;
};

}  // namespace bubblescope

// Splits totals at the prefix sums of the weights.
#include "sim/model/uneven_spread.h"

#include <numeric>
#include <vector>

namespace bubblescope {

namespace {

__extension__ typedef __int128 Wide;  // products need more than 64 bits

/// floor(total * part / whole).
Nanos share_of(Nanos total, std::int64_t part, std::int64_t whole) {
  return static_cast<Nanos>(Wide{total} * part / whole);
}

class Cutting {
 public:
  Cutting(std::span<const std::int64_t> weights, std::int32_t slices)
      : slices_(slices), until_(weights.size() + 1, 0) {
    std::partial_sum(weights.begin(), weights.end(), until_.begin() + 1);
  }

  /// The part of a total that a stage's slice gets.
  Nanos part(Nanos total, std::int32_t stage, std::int32_t slice) const {
    const Nanos of_stage = share_of(total, until_[stage + 1], until_.back()) -
                           share_of(total, until_[stage], until_.back());
    return share_of(of_stage, slice + 1, slices_) - share_of(of_stage, slice, slices_);
  }

 private:
  std::int32_t slices_;
  std::vector<std::int64_t> until_;
};

}  // namespace

CostModel spread_unevenly(const UniformCost& cost, const Schedule& schedule,
                          std::span<const std::int64_t> weights) {
  CostModel model = spread(cost, schedule);
  const std::int32_t stages = schedule.stages_per_pipeline();
  StageCost total;
  for (std::int32_t at = 0; at < stages * model.slices; ++at) {
    const StageCost& even = model.stages[at];
    total.forward += even.forward;
    total.backward += even.backward;
    total.input_grad += even.input_grad;
    total.weight_grad += even.weight_grad;
    total.recompute += even.recompute;
  }
  const Cutting cutting(weights, model.slices);
  for (std::int32_t at = 0; at < schedule.stages() * model.slices; ++at) {
    const std::int32_t stage = at / model.slices % stages;
    const std::int32_t slice = at % model.slices;
    StageCost& cut = model.stages[at];
    cut.forward = cutting.part(total.forward, stage, slice);
    cut.backward = cutting.part(total.backward, stage, slice);
    cut.input_grad = cutting.part(total.input_grad, stage, slice);
    cut.weight_grad = cutting.part(total.weight_grad, stage, slice);
    cut.recompute = cutting.part(total.recompute, stage, slice);
  }
  return model;
}

}  // namespace bubblescope

// Splits totals at the prefix sums of the weights.
#include "sim/model/uneven_spread.h"

#include <numeric>
#include <vector>

namespace bubblescope::inline sim {

namespace {

__extension__ typedef __int128 Wide;  // products need more than 64 bits

/// Returns floor(total * part / whole).
Nanos share_of(Nanos total, std::int64_t part, std::int64_t whole) {
  return static_cast<Nanos>(Wide{total} * part / whole);
}

class WeightedSplit {
 public:
  WeightedSplit(std::span<const std::int64_t> weights, std::int32_t slices)
      : slices_(slices), prefix_sums_(weights.size() + 1, 0) {
    std::partial_sum(weights.begin(), weights.end(), prefix_sums_.begin() + 1);
  }

  /// The part of a total that a stage's slice gets.
  Nanos part(Nanos total, std::int32_t stage, std::int32_t slice) const {
    const Nanos of_stage = share_of(total, prefix_sums_[stage + 1], prefix_sums_.back()) -
                           share_of(total, prefix_sums_[stage], prefix_sums_.back());
    return share_of(of_stage, slice + 1, slices_) - share_of(of_stage, slice, slices_);
  }

 private:
  std::int32_t slices_;
  std::vector<std::int64_t> prefix_sums_;
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
  const WeightedSplit split(weights, model.slices);
  for (std::int32_t at = 0; at < schedule.stages() * model.slices; ++at) {
    const std::int32_t stage = at / model.slices % stages;
    const std::int32_t slice = at % model.slices;
    StageCost& part_cost = model.stages[at];
    part_cost.forward = split.part(total.forward, stage, slice);
    part_cost.backward = split.part(total.backward, stage, slice);
    part_cost.input_grad = split.part(total.input_grad, stage, slice);
    part_cost.weight_grad = split.part(total.weight_grad, stage, slice);
    part_cost.recompute = split.part(total.recompute, stage, slice);
  }
  return model;
}

}  // namespace bubblescope::inline sim

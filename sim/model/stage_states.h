// What a rank holds whatever the schedule, and what a stage does once per update.
#pragma once

#include <cstdint>

#include "sim/ir/units.h"
#include "sim/model/cost_model.h"
#include "sim/model/layer_cost.h"

namespace bubblescope {

/// Parameters of a stage, as one tensor rank holds them.
struct StageParameters {
  double dense = 0;    ///< of which every data and context rank has a copy
  double experts = 0;  ///< of which one in `expert` of them has a copy

  double all() const { return dense + experts; }
  StageParameters& operator+=(const StageParameters& more) {
    dense += more.dense;
    experts += more.experts;
    return *this;
  }
};

/// What the states of a rank weigh, by what they are made of.
struct StateBytes {
  Bytes weights = 0;
  Bytes gradients = 0;
  Bytes optimizer = 0;
  Bytes buffers = 0;  ///< messages on their way, a layer that is computed again, gathered weights
  Bytes context = 0;  ///< the driver's and the libraries', and what the allocator cannot use

  Bytes total() const { return weights + gradients + optimizer + buffers + context; }
  StateBytes& operator+=(const StateBytes& more);
};

/// Weights 2, gradients 4, Adam 12 bytes per parameter, divided over their copies as the ZeRO stage
/// says (arXiv 1910.02054, section 5); and the context. Buffers are left to the caller.
StateBytes states_of(const Parallelism& parallel, const StageParameters& parameters);

/// A stage's update. Its gradients are reduced in 32 bits while its last backward still runs:
/// `reduce_grad` is what then is left, at least a sixteenth (the last bucket). `optimizer` updates
/// a shard, and gathers what of the new weights the next step's first forward does not hide.
/// `holders` ranks of this pipeline (and its mirror) hold the stage.
UpdateCost update_cost(const ModelOnDevices& on, const StageParameters& parameters,
                       const PhaseTimes& times, std::int32_t holders);

/// The gradient norm: one number, summed over all ranks.
Nanos norm_time(const ModelOnDevices& on, std::int32_t pipeline_ranks);

}  // namespace bubblescope

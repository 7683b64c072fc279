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

/// Weights 2, gradients 4 and Adam 12 bytes per parameter (less, as Parallelism::gradients says),
/// divided over their copies as the ZeRO stage says (arXiv 1910.02054, section 5); and the context.
/// Buffers are left to the caller.
StateBytes states_of(const Parallelism& parallel, const StageParameters& parameters);

/// Who else holds a stage, and who moves its shards.
struct StageSharing {
  std::int32_t holders = 1;  ///< ranks of this pipeline, and its mirror
  bool by_schedule = false;  ///< ops of the schedule gather weights and reduce gradients
};

/// What sharding adds to a micro-batch's ops on a stage. From ZeRO stage 2 on its gradients are
/// reduced beside its W, because no rank has room for all of them until the step's end; in stage 3
/// the weights are gathered beside its F, and again beside its I. What compute does not hide is
/// waited for, at least a sixteenth.
PhaseTimes with_sharding(PhaseTimes times, const ModelOnDevices& on,
                         const StageParameters& parameters, const StageSharing& sharing);

/// A stage's update. Its gradients are reduced in 32 bits while its last backward still runs:
/// `reduce_grad` is what then is left, at least a sixteenth (the last bucket). `optimizer` updates
/// a shard, and gathers what of the new weights the next step's first forward does not hide.
/// With the last micro-batch nothing is left to reduce from ZeRO stage 2 on, nor to gather in 3,
/// but where the schedule itself does (`by_schedule`: UNSHARD and REDUCE_GRAD are ops of it).
UpdateCost update_cost(const ModelOnDevices& on, const StageParameters& parameters,
                       const PhaseTimes& times, const StageSharing& sharing);

/// The gradient norm: one number, summed over all ranks.
Nanos norm_time(const ModelOnDevices& on, std::int32_t pipeline_ranks);

}  // namespace bubblescope

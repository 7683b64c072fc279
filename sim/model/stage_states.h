// The memory that a rank holds under every schedule, and the cost of a stage's update.
#pragma once

#include <cstdint>

#include "sim/ir/schedule.h"
#include "sim/ir/units.h"
#include "sim/model/cost_model.h"
#include "sim/model/layer_cost.h"

namespace bubblescope::inline sim {

/// Parameters of a stage on one tensor rank.
struct StageParameters {
  double dense = 0;    ///< copied on every data and context rank
  double experts = 0;  ///< copied on one in `expert` of them
  double layers = 0;   ///< with these parameters; fully sharded ones are gathered one by one

  double all() const { return dense + experts; }
  StageParameters& operator+=(const StageParameters& more) {
    dense += more.dense;
    experts += more.experts;
    layers += more.layers;
    return *this;
  }
};

/// Bytes of a rank's states, by purpose.
struct StateBytes {
  Bytes weights = 0;
  Bytes gradients = 0;
  Bytes optimizer = 0;
  Bytes buffers = 0;  ///< messages in transit, a layer being recomputed, gathered weights
  Bytes context = 0;  ///< the driver's and libraries', and allocator overhead

  Bytes total() const { return weights + gradients + optimizer + buffers + context; }
  StateBytes& operator+=(const StateBytes& more);
  bool operator==(const StateBytes&) const = default;
};

/// Bytes per parameter, besides its 16-bit weight.
struct ParameterBytes {
  double gradient = 0;
  double optimizer = 0;  ///< two moments, and the master weight or what of it the weight lacks
};
ParameterBytes count_state_bytes(const Parallelism& parallel);

/// Bytes that an update moves per parameter: Adam reads gradient, weight and moments and writes
/// weights and moments; gradients are also read for the norm, read and written to clip them, and
/// cleared.
struct UpdateBytes {
  double adam = 0;
  double norm = 0;
  double clipping = 0;
  double clearing = 0;

  double all() const { return adam + norm + clipping + clearing; }
};
UpdateBytes count_update_bytes(const Parallelism& parallel);

/// Whether a rank's weights are 32-bit shards, which Adam updates: in PyTorch's FSDP, where 16-bit
/// ones exist only while they are gathered.
bool shards_master_weights(const Parallelism& parallel);

/// Weights 2, gradients 4 and Adam 12 bytes per parameter (less for other Parallelism::gradients),
/// divided over their copies by ZeRO stage (arXiv 1910.02054, section 5); plus the context. The
/// caller adds buffers.
StateBytes count_states(const Parallelism& parallel, const StageParameters& parameters);

/// The sharing of a stage: who holds it, and who moves its shards. A collective is on the ops of
/// the schedule where it has them, and else in the ops of micro-batches or in the update.
struct StageSharing {
  std::int32_t holders = 1;           ///< ranks of this pipeline that hold it, and its mirror
  bool gathered_by_schedule = false;  ///< its UNSHARDs gather the weights
  bool reduced_by_schedule = false;   ///< its REDUCE_GRADs reduce the gradients, which are whole
                                      ///< until then
};

/// Who moves the shards of the schedule's stages, each of which `holders` ranks hold.
StageSharing find_sharing(const Schedule& schedule, std::int32_t holders);

/// Adds the exposed cost of sharding to a micro-batch's ops on a stage. From ZeRO stage 2 on,
/// gradients are reduced beside its backward, because no rank can hold all of them until the step's
/// end; in stage 3 weights are gathered beside its F, and again beside its backward, before
/// gradients use the network. The exposed part is what compute does not hide, at least a sixteenth;
/// what it hides slows that compute down, unless the network is the longer one anyway.
PhaseTimes with_sharding(PhaseTimes times, const ModelOnDevices& on,
                         const StageParameters& parameters, const StageSharing& sharing);

/// A stage's update. Its 32-bit gradients are reduced while its last backward still runs:
/// `reduce_grad` is the part that remains, at least a sixteenth (the last bucket). `optimizer`
/// updates a shard and gathers the new weights, as far as the next step's first forward does not
/// hide it. From ZeRO stage 2 on nothing remains to be reduced, and in stage 3 nothing to be
/// gathered. A REDUCE_GRAD of the schedule begins when the last backward has ended, and takes all
/// of the reduction (PyTorch's perform_reduce_grad); an UNSHARD takes all of the gathering, and
/// below ZeRO stage 3 no time, because every rank has the weights.
UpdateCost estimate_update_cost(const ModelOnDevices& on, const StageParameters& parameters,
                                const PhaseTimes& times, const StageSharing& sharing);

/// Returns the time of the gradient norm: one number is summed over all ranks.
Nanos estimate_norm_time(const ModelOnDevices& on, std::int32_t pipeline_ranks);

}  // namespace bubblescope::inline sim

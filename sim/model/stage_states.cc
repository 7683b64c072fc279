// Bytes per parameter, and collectives over the copies of parameters.
#include "sim/model/stage_states.h"

#include <algorithm>
#include <cmath>

#include "sim/ir/lower_collectives.h"
#include "sim/ir/range.h"

namespace bubblescope::inline sim {

namespace {

constexpr Bytes kContext = Bytes{2} << 30;  ///< for CUDA and NCCL; assumed
constexpr double kWeightBytes = 2;
constexpr double kLastBucket = 1.0 / 16;  ///< of a collective cannot be hidden

/// Ranks that hold copies of the same parameters, `stride` devices apart: groups of neighbours that
/// share the shards of one copy, `groups` times.
struct CopyGroup {
  std::int32_t shards = 1;
  std::int32_t groups = 1;
  std::int32_t stride = 1;
};

/// Hybrid sharding has as many groups of an expert's copies as of all others; where there are fewer
/// copies than groups, each is whole. Where nothing is sharded, all copies are one group.
CopyGroup divide_copies(const Parallelism& parallel, std::int32_t copies, std::int32_t stride) {
  const std::int32_t all = parallel.copies();
  const std::int32_t shard_ranks =
      parallel.zero_stage > 0 ? parallel.shard_ranks.value_or(all) : all;
  const std::int32_t groups = std::min(copies, all / shard_ranks);
  return {copies / groups, groups, stride};
}

CopyGroup find_dense_copies(const Parallelism& parallel) {
  return divide_copies(parallel, parallel.copies(), parallel.tensor);
}

CopyGroup find_expert_copies(const Parallelism& parallel) {
  const std::int32_t parts = parallel.expert_split() * parallel.expert;
  return divide_copies(parallel, static_cast<std::int32_t>(parallel.ranks_of_stage() / parts),
                       parts);
}

StateBytes shard(double parameters, std::int32_t shards, const Parallelism& parallel) {
  const std::int32_t zero_stage = parallel.zero_stage;
  const auto bytes = [&](double each, bool sharded) {
    return round_bytes(parameters * each / (sharded ? shards : 1), "a stage's parameters");
  };
  StateBytes states;
  const bool only_master = shards_master_weights(parallel);
  states.weights = only_master ? 0 : bytes(kWeightBytes, zero_stage >= 3);
  states.gradients =
      bytes(count_state_bytes(parallel).gradient, zero_stage >= 2 && !parallel.whole_gradients);
  states.optimizer = bytes(count_state_bytes(parallel).optimizer, zero_stage >= 1);
  return states;
}

/// Collectives for one kind of parameters.
struct UpdateTimes {
  Nanos reduce = 0;
  Nanos gather = 0;
  double updated = 0;  ///< parameters that this rank updates
};

UpdateTimes times_of(const ModelOnDevices& on, double parameters, double layers, CopyGroup group,
                     std::int32_t holders) {
  if (parameters == 0) return {};
  const bool sharded = on.parallel.zero_stage >= 1;
  const double pieces = on.parallel.zero_stage >= 3 ? std::max(1.0, layers) : 1;
  const std::int32_t shards = group.shards * holders;
  const GroupLink link = find_group_link(on.gpu, shards, group.stride);
  UpdateTimes times;
  const double reduced = count_state_bytes(on.parallel).gradient * parameters;
  times.reduce = sharded ? estimate_all_gather_time(reduced, shards, link, pieces)
                         : estimate_all_reduce_time(reduced, shards, link);
  // Ranks with the same shard add up theirs.
  if (group.groups > 1)
    times.reduce +=
        estimate_all_reduce_time(reduced / (sharded ? shards : 1), group.groups,
                                 find_group_link(on.gpu, group.groups, group.stride * shards));
  times.gather = estimate_all_gather_time(kWeightBytes * parameters, group.shards, link, pieces);
  times.updated = parameters / (sharded ? group.shards : 1);
  return times;
}

/// Returns the times for all parameters of a stage.
UpdateTimes times_of(const ModelOnDevices& on, const StageParameters& parameters,
                     std::int32_t holders) {
  const UpdateTimes dense =
      times_of(on, parameters.dense, parameters.layers, find_dense_copies(on.parallel), holders);
  const UpdateTimes experts =
      times_of(on, parameters.experts, parameters.layers, find_expert_copies(on.parallel), holders);
  return {dense.reduce + experts.reduce, dense.gather + experts.gather,
          dense.updated + experts.updated};
}

/// Returns the exposed time of a collective beside so much compute. Its last part is exposed. Of
/// the rest, so is the time by which it is longer than the compute, or the time by which it slows
/// the compute down.
Nanos exposed(Nanos collective, double compute, const CostAssumptions& assumptions,
              double min_fraction = kLastBucket) {
  const auto last =
      static_cast<Nanos>(std::llround(min_fraction * static_cast<double>(collective)));
  const Nanos hidden = collective - last;
  const Nanos slowdown = std::llround(assumptions.collective_sms * static_cast<double>(hidden));
  return last + std::max(slowdown, hidden - round_nanos(compute, "a stage's compute"));
}

/// Whether gradients are reduced once per step; otherwise after every backward, beside its compute.
bool reduces_at_end(const Parallelism& parallel, const StageSharing& sharing) {
  return parallel.zero_stage < 2 || parallel.whole_gradients || sharing.reduced_by_schedule;
}

}  // namespace

StateBytes& StateBytes::operator+=(const StateBytes& more) {
  weights += more.weights;
  gradients += more.gradients;
  optimizer += more.optimizer;
  buffers += more.buffers;
  context += more.context;
  return *this;
}

bool shards_master_weights(const Parallelism& parallel) {
  return parallel.pytorch && parallel.zero_stage >= 3 && parallel.gradients != Gradients::kPure;
}

ParameterBytes count_state_bytes(const Parallelism& parallel) {
  const auto moments = static_cast<double>(2 * parallel.bytes_of_moment());
  switch (parallel.gradients) {
    case Gradients::kFp32: return {4, 4 + moments};
    case Gradients::kBf16: return {2, 4 + moments};
    case Gradients::kLean: return {2, 2 + moments};  // the 16 bits that the weight lacks
    case Gradients::kPure: return {2, moments};
  }
  return {};
}

UpdateBytes count_update_bytes(const Parallelism& parallel) {
  const bool is_pure = parallel.gradients == Gradients::kPure;
  const double gradient = is_pure ? 2 : 4;
  const double weights = is_pure ? 2 + 2 : 4 + 4 + 2;  // read and written, master weights as well
  return {gradient + weights + 4 * static_cast<double>(parallel.bytes_of_moment()), gradient,
          2 * gradient, gradient};
}

StateBytes count_states(const Parallelism& parallel, const StageParameters& parameters) {
  StateBytes states = shard(parameters.dense, find_dense_copies(parallel).shards, parallel);
  states += shard(parameters.experts, find_expert_copies(parallel).shards, parallel);
  states.context = kContext;
  return states;
}

StageSharing find_sharing(const Schedule& schedule, std::int32_t holders) {
  return {holders, posts_kind(schedule, OpKind::kUnshard),
          posts_kind(schedule, OpKind::kReduceGrad)};
}

PhaseTimes with_sharding(PhaseTimes times, const ModelOnDevices& on,
                         const StageParameters& parameters, const StageSharing& sharing) {
  const UpdateTimes all = times_of(on, parameters, sharing.holders);
  // All of a backward hides collectives: weights are gathered for the next layer, and gradients of
  // the layers before are reduced, on the same network.
  double hiding = times.input_grad + times.weight_grad;
  if (on.parallel.zero_stage >= 3 && !sharing.gathered_by_schedule) {
    const auto gathered_beside = [&](double compute) {
      return static_cast<double>(exposed(all.gather, compute, on.assumptions));
    };
    times.forward += gathered_beside(times.forward);
    times.input_grad += gathered_beside(times.input_grad);
    hiding = times.input_grad + times.weight_grad - static_cast<double>(all.gather);
  }
  if (!reduces_at_end(on.parallel, sharing))
    times.weight_grad += static_cast<double>(exposed(all.reduce, hiding, on.assumptions));
  return times;
}

UpdateCost estimate_update_cost(const ModelOnDevices& on, const StageParameters& parameters,
                                const PhaseTimes& times, const StageSharing& sharing) {
  const UpdateTimes all = times_of(on, parameters, sharing.holders);
  const std::int32_t zero_stage = on.parallel.zero_stage;
  const double hiding = times.input_grad + times.weight_grad;
  const double rate = on.gpu.memory_bytes_per_second * on.assumptions.memory_efficiency;
  UpdateCost cost;
  if (reduces_at_end(on.parallel, sharing))
    cost.reduce_grad = sharing.reduced_by_schedule ? all.reduce
                                                   : exposed(all.reduce, hiding, on.assumptions,
                                                             on.assumptions.gradients_exposed);
  const double moved = count_update_bytes(on.parallel).all() * all.updated;
  cost.optimizer = round_nanos(moved / rate * 1e9, "an optimizer step");
  if (zero_stage == 1 || zero_stage == 2)
    cost.optimizer +=
        exposed(all.gather, times.forward, on.assumptions, on.assumptions.gradients_exposed);
  if (zero_stage >= 3) cost.unshard = all.gather;
  return cost;
}

Nanos estimate_norm_time(const ModelOnDevices& on, std::int32_t pipeline_ranks) {
  const Parallelism& parallel = on.parallel;
  const std::int32_t ranks = parallel.tensor * parallel.context * parallel.data * pipeline_ranks;
  return estimate_all_reduce_time(4, ranks, find_group_link(on.gpu, ranks, 1));
}

}  // namespace bubblescope::inline sim

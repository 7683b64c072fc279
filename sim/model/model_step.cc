// Computes stages from layers, and ranks from stages.
#include "sim/model/model_step.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

#include "sim/ir/error.h"
#include "sim/ir/lower_collectives.h"
#include "sim/ir/needs.h"
#include "sim/ir/range.h"
#include "sim/model/activation_bytes.h"
#include "sim/model/place_stages.h"

namespace bubblescope::inline sim {

namespace {

/// The largest divisor of `number` that is at most `largest`.
std::int64_t divisor_below(std::int64_t number, std::int64_t largest) {
  while (largest > 1 && number % largest != 0) --largest;
  return std::max<std::int64_t>(largest, 1);
}

void expect_divisible(const ModelOnDevices& on) {
  const auto refuse = [](const std::string& flag, std::int64_t given, const std::string& of,
                         std::int64_t number) {
    if (number % given == 0) return;
    throw Error(Fault::kProblem, flag + " " + std::to_string(given) + " does not divide " + of +
                                     " (" + std::to_string(number) + "); give a divisor, such as " +
                                     std::to_string(divisor_below(number, given)));
  };
  const Parallelism& parallel = on.parallel;
  refuse("`tp`", parallel.tensor, "the model's heads", on.model.heads);
  refuse("`cp` times `tp`:", std::int64_t{parallel.context} * parallel.tensor,
         "the tokens of `seq_length`", parallel.sequence);
  if (parallel.expert > 1 && !on.model.experts)
    throw Error(Fault::kProblem, "the model has no experts; leave `ep` out");
  if (on.model.experts)
    refuse("`ep`", parallel.expert, "the model's experts", on.model.experts->count);
  const std::int64_t parts = parallel.expert_split();
  if (parts == parallel.tensor) {
    refuse("`ep`", parallel.expert, "`dp` times `cp`",
           std::int64_t{parallel.data} * parallel.context);
    return;
  }
  refuse("`etp`", parts, "the ranks of a stage: `tp` times `cp` times `dp`",
         parallel.ranks_of_stage());
  refuse("`ep`", parallel.expert,
         "`tp` times `cp` times `dp` over `etp` " + std::to_string(parts) + ":",
         parallel.ranks_of_stage() / parts);
}

void expect_layers(const ModelOnDevices& on, std::int32_t stages) {
  const std::int64_t largest = max_stages(on.model);
  if (stages > largest)
    throw Error(Fault::kProblem, "the model's " + std::to_string(on.model.layers) +
                                     " layers, its embedding and its head make at most " +
                                     std::to_string(largest) + " stages, not " +
                                     std::to_string(stages) + "; give less of `pp` or `vpp`");
}

/// Every rank that holds a stage holds all of it.
std::vector<RankLoad> sum_rank_loads(const Schedule& schedule,
                                     const std::vector<StageLoad>& stages) {
  std::vector<RankLoad> loads(static_cast<std::size_t>(schedule.shape.ranks));
  for (std::int32_t stage = 0; stage < schedule.stages(); ++stage) {
    const StageLoad& held =
        stages[static_cast<std::size_t>(stage % schedule.stages_per_pipeline())];
    for (std::int32_t replica = 0; replica < schedule.replicas(stage); ++replica) {
      RankLoad& load = loads[static_cast<std::size_t>(schedule.rank_of_stage[stage] + replica)];
      load.layers += held.layers;
      load.parameters += held.parameters;
      load.tables += held.tables;
      load.head = load.head || schedule.is_last(stage);
    }
  }
  return loads;
}

std::vector<Bytes> count_gathered_bytes(const Schedule& schedule,
                                        const std::vector<StageLoad>& stages) {
  std::vector<Bytes> bytes;
  for (std::int32_t stage = 0; stage < schedule.stages(); ++stage) {
    const auto at = static_cast<std::size_t>(stage % schedule.stages_per_pipeline());
    bytes.push_back(round_bytes(2 * stages[at].parameters.all(), "a stage's gathered weights"));
  }
  return bytes;
}

/// Every tensor rank sends its part. If the receiver's tensor ranks each need the whole, they
/// gather it in their node (scatter-gather, arXiv 2104.04473, section 4.1).
Nanos estimate_message_time(const ModelOnDevices& on, const Link& link, double bytes) {
  const Parallelism& parallel = on.parallel;
  if (parallel.sequence_parallel) return link.time(bytes);
  return link.time(bytes / parallel.tensor) +
         estimate_all_gather_time(bytes, parallel.tensor,
                                  find_group_link(on.gpu, parallel.tensor, 1));
}

/// Sets the message times between all pairs of ranks, by their nodes.
void set_messages(CostModel& costs, const ModelOnDevices& on, const Shape& shape) {
  const double bytes = count_message_bytes(on, shape.slices);
  std::optional<Link> last;  // most pairs have the link of the pair before
  Nanos time = 0;
  Nanos byte_time = 0;
  for (std::int32_t from = 0; from < shape.ranks; ++from)
    for (std::int32_t to = 0; to < shape.ranks; ++to) {
      const Link link = find_rank_link(on, from, to);
      if (last != link) {
        time = estimate_message_time(on, link, bytes);
        byte_time = time - estimate_message_time(on, link, 0);
        last = link;
      }
      costs.message_between.push_back(time);
      costs.byte_time_between.push_back(byte_time);
    }
}

/// Moves the exposed part of a message from the message to the op that sends it.
void expose_messages(CostModel& costs, const Schedule& schedule, double exposed) {
  if (exposed == 0) return;
  const auto slices = static_cast<std::size_t>(costs.slices);
  const auto between = [&](std::int32_t from, std::int32_t to) -> Nanos {
    const std::int64_t ranks = schedule.shape.ranks;
    return from == to ? 0 : costs.message_between[static_cast<std::size_t>(from * ranks + to)];
  };
  for (std::int32_t stage = 0; stage < schedule.stages(); ++stage) {
    Nanos activation = 0;
    Nanos gradient = 0;
    const auto raise = [&](Nanos& slowest, std::int32_t other) {
      slowest =
          std::max(slowest, between(schedule.rank_of_stage[stage], schedule.rank_of_stage[other]));
    };
    for_each_reader(schedule, stage, [&](std::int32_t reader) { raise(activation, reader); });
    for_each_input(schedule, stage, [&](std::int32_t input) { raise(gradient, input); });
    const auto waited = [&](Nanos message) {
      return round_nanos(exposed * static_cast<double>(message), "a message");
    };
    for (std::size_t slice = 0; slice < slices; ++slice) {
      StageCost& cost = costs.stages[static_cast<std::size_t>(stage) * slices + slice];
      cost.forward += waited(activation);
      cost.input_grad += waited(gradient);
      cost.backward += waited(gradient);
    }
  }
  for (auto* times : {&costs.message_between, &costs.byte_time_between})
    for (Nanos& time : *times) time = std::llround((1 - exposed) * static_cast<double>(time));
}

StageCost make_slice_cost(const PhaseTimes& times, std::int32_t slices) {
  StageCost cost;
  cost.forward = cost.recompute = round_nanos(times.forward / slices, "the forward of a stage");
  cost.input_grad = round_nanos(times.input_grad / slices, "the input gradient of a stage");
  cost.weight_grad = round_nanos(times.weight_grad / slices, "the weight gradient of a stage");
  cost.backward = cost.input_grad + cost.weight_grad;
  return cost;
}

/// The time of an overlapped pair. The all-to-all of each half runs beside the other half's
/// compute, which it slows down like any hidden collective. Assumes that the backward is of the
/// same stage.
Nanos estimate_pair_time(const StageCost& cost, const ModelOnDevices& on, double exchange) {
  const bool again = on.parallel.recompute == Recompute::kFull;
  const double waits = (again ? 3 : 2) * exchange;
  const double both = static_cast<double>(cost.forward + cost.backward);
  const double hidden = std::min(waits, both - waits) * (1 - on.assumptions.collective_sms);
  return std::max<Nanos>(cost.forward, std::llround(both - hidden));
}

}  // namespace

MemoryDelta slice_memory(const MemoryDelta& whole, std::int32_t slices) {
  const Bytes forward = whole.forward / slices;
  const Bytes weight_grad = whole.weight_grad / slices;
  return {forward, -forward - weight_grad, weight_grad};
}

StateBytes count_rank_states(const ModelOnDevices& on, const Shape& shape, const RankLoad& load) {
  StateBytes states = count_states(on.parallel, load.parameters);
  states.buffers = count_buffer_bytes(on, shape, load);
  if (!on.trains) states.gradients = states.optimizer = 0;
  return states;
}

ModelStep compute_model_step(const ModelOnDevices& on, const Schedule& schedule) {
  const std::int32_t shards = schedule.side_stages;
  if (!schedule.graph.is_chain() && shards == 0)
    throw Error(Fault::kProblem, "`model` is a chain of layers, and the stages of " +
                                     schedule.name + " are a graph; give `costs` for every stage");
  expect_divisible(on);
  const std::int32_t count = schedule.stages_per_pipeline();
  expect_layers(on, count - shards);
  const PlacedStages placed = place_stages(on, schedule);
  const std::vector<StageLoad>& stages = placed.loads;
  const std::int32_t slices = schedule.shape.slices;
  const bool by_schedule = posts_collectives(schedule);
  ModelStep step;
  step.first_layer = placed.first_layer;
  step.costs.slices = slices;
  set_messages(step.costs, on, schedule.shape);
  step.costs.norm = estimate_norm_time(on, schedule.shape.ranks);
  for (std::int32_t stage = 0; stage < schedule.stages(); ++stage) {
    const StageLoad& load = stages[static_cast<std::size_t>(stage % count)];
    std::optional<ModelOnDevices> own;
    if (!on.rank_gpus.empty())
      own = on_device_of(on, schedule.rank_of_stage[static_cast<std::size_t>(stage)]);
    const ModelOnDevices& here = own ? *own : on;
    const StageSharing sharing{schedule.replicas(stage) * schedule.pipelines, by_schedule};
    StageCost cost =
        make_slice_cost(with_sharding(load.times, here, load.parameters, sharing), slices);
    if (on.assumptions.pairs_hide_exchange && load.exchange > 0)
      cost.overlapped_pair = estimate_pair_time(cost, on, load.exchange / slices);
    step.costs.stages.insert(step.costs.stages.end(), static_cast<std::size_t>(slices), cost);
    step.costs.updates.push_back(estimate_update_cost(here, load.parameters, load.times, sharing));
    step.activation_bytes.push_back(on.trains ? slice_memory(load.memory, slices) : MemoryDelta{});
  }
  if (on.counts_gathered && on.parallel.zero_stage >= 3)
    step.gathered_bytes = count_gathered_bytes(schedule, stages);
  expose_messages(step.costs, schedule, on.assumptions.message_exposed);
  for (const RankLoad& load : sum_rank_loads(schedule, stages))
    step.states.push_back(count_rank_states(on, schedule.shape, load));
  return step;
}

Schedule make_unordered_schedule(const Shape& shape, std::int32_t side_stages) {
  Schedule unordered;
  unordered.shape = shape;
  unordered.rank_of_stage = loop_placement(shape.ranks, shape.chunks);
  for (std::int32_t stage = 0; stage < side_stages; ++stage)
    unordered.rank_of_stage.push_back(stage % shape.ranks);
  unordered.side_stages = side_stages;
  unordered.order.resize(static_cast<std::size_t>(shape.ranks));
  return unordered;
}

ModelStep compute_model_step(const ModelOnDevices& on, const Shape& shape) {
  return compute_model_step(on, make_unordered_schedule(shape));
}

Bytes min_bytes(const ModelStep& step) {
  const auto forward_less = [](const MemoryDelta& left, const MemoryDelta& right) {
    return left.forward < right.forward;
  };
  const auto [smallest, largest] =
      std::minmax_element(step.activation_bytes.begin(), step.activation_bytes.end(), forward_less);
  Bytes sum = 0;
  const Bytes fixed = step.states.front().context;
  for (const StateBytes& states : step.states) sum += states.total();
  const Bytes mean = sum / static_cast<Bytes>(step.states.size());
  return std::max(mean + smallest->forward, fixed + largest->forward);
}

}  // namespace bubblescope::inline sim

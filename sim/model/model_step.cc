// Computes stages from layers, and ranks from stages.
#include "sim/model/model_step.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

#include "sim/ir/counted.h"
#include "sim/ir/error.h"
#include "sim/ir/needs.h"
#include "sim/ir/range.h"
#include "sim/model/activation_bytes.h"
#include "sim/model/place_stages.h"

namespace bubblescope::inline sim {

namespace {

/// Returns the largest divisor of `number` that is at most `largest`.
std::int64_t divisor_below(std::int64_t number, std::int64_t largest) {
  while (largest > 1 && number % largest != 0) --largest;
  return std::max<std::int64_t>(largest, 1);
}

void expect_divisible(const ModelOnDevices& on) {
  const auto refuse = [](const std::string& flag, std::int64_t given, const std::string& of,
                         std::int64_t number, const std::string& instead = "") {
    if (number % given == 0) return;
    throw Error(Fault::kProblem, flag + " " + std::to_string(given) + " does not divide " + of +
                                     " (" + std::to_string(number) + "); give a divisor, such as " +
                                     std::to_string(divisor_below(number, given)) + instead);
  };
  const Parallelism& parallel = on.parallel;
  refuse("`tp`", parallel.tensor, "the model's heads", on.model.heads);
  refuse("`cp` times `tp`:", std::int64_t{parallel.context} * parallel.tensor,
         "the tokens of `seq_length`", parallel.sequence);
  if (parallel.shard_ranks)
    refuse("`shard_size`", *parallel.shard_ranks, "`dp` times `cp`",
           std::int64_t{parallel.data} * parallel.context);
  if (parallel.expert > 1 && !on.model.experts)
    throw Error("the model has no experts; leave `ep` out");
  if (on.model.experts)
    refuse("`ep`", parallel.expert, "the model's experts", on.model.experts->count);
  const std::int64_t parts = parallel.expert_split();
  if (parts == parallel.tensor) {
    refuse("`ep`", parallel.expert, "`dp` times `cp`",
           std::int64_t{parallel.data} * parallel.context,
           ", or more `dp`, such as " + std::to_string(parallel.expert));
    return;
  }
  refuse("`etp`", parts, "the ranks of a stage: `tp` times `cp` times `dp`",
         parallel.ranks_of_stage());
  refuse("`ep`", parallel.expert,
         "`tp` times `cp` times `dp`, divided by an `etp` of " + std::to_string(parts),
         parallel.ranks_of_stage() / parts);
}

void expect_layers(const ModelOnDevices& on, std::int32_t stages) {
  const std::int64_t largest = max_stages(on.model);
  if (stages > largest)
    throw Error(Fault::kProblem, "the model's " + counted(on.model.layers, "layer") +
                                     ", its embedding and its head make at most " +
                                     counted(largest, "stage") + ", not " + std::to_string(stages) +
                                     "; give less of `pp` or `vpp`");
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
      load.add(held);
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

/// The time of a message, the part of it that its bytes take, and what is left of both beside the
/// part that the sending op waits for.
struct MessageTime {
  Nanos whole = 0;
  Nanos hidden = 0;
  Nanos hidden_bytes = 0;
};

/// The messages between the ranks of a pipeline, by their nodes.
class RankMessages {
 public:
  RankMessages(const ModelOnDevices& on, const Shape& shape)
      : on_(on), bytes_(count_message_bytes(on, shape.slices)) {
    for (std::int64_t rank = 0; rank < shape.ranks; ++rank)
      node_of_rank_.push_back(rank * on.parallel.ranks_of_stage() / on.gpu.per_node);
    inside_ = time_over(on.gpu.between_devices());
    outside_ = time_over(on.gpu.outside);
  }

  MessageTime between(std::int32_t from, std::int32_t to) const {
    if (!on_.rank_gpus.empty()) return time_over(find_rank_link(on_, from, to));
    return node_of_rank_[from] == node_of_rank_[to] ? inside_ : outside_;
  }

  void set_hidden(CostModel& costs) const {
    const auto ranks = node_of_rank_.size();
    costs.message_between.assign(ranks * ranks, outside_.hidden);
    costs.byte_time_between.assign(ranks * ranks, outside_.hidden_bytes);
    for (std::size_t from = 0; from < ranks; ++from)
      for (std::size_t to = first_near(from); to < ranks && is_near(from, to); ++to) {
        const MessageTime time =
            between(static_cast<std::int32_t>(from), static_cast<std::int32_t>(to));
        costs.message_between[from * ranks + to] = time.hidden;
        costs.byte_time_between[from * ranks + to] = time.hidden_bytes;
      }
  }

 private:
  /// Ranks of a node are adjacent; where ranks have different devices, any two may differ.
  bool is_near(std::size_t from, std::size_t to) const {
    return !on_.rank_gpus.empty() || node_of_rank_[from] == node_of_rank_[to];
  }
  std::size_t first_near(std::size_t from) const {
    while (from > 0 && is_near(from, from - 1)) --from;
    return from;
  }

  MessageTime time_over(const Link& link) const {
    const auto hidden = [&](Nanos time) -> Nanos {
      return std::llround((1 - on_.assumptions.message_exposed) * static_cast<double>(time));
    };
    const Nanos whole = estimate_message_time(on_, link, bytes_);
    return {whole, hidden(whole), hidden(whole - estimate_message_time(on_, link, 0))};
  }

  const ModelOnDevices& on_;
  double bytes_;
  std::vector<std::int64_t> node_of_rank_;  ///< where all ranks have the same device
  MessageTime inside_;
  MessageTime outside_;
};

/// The slowest messages between a stage and its neighbours.
struct StageMessages {
  Nanos sent_activation = 0;
  Nanos sent_gradient = 0;
  Nanos received_activation = 0;
  Nanos received_gradient = 0;
};

StageMessages find_slowest(const Schedule& schedule, std::int32_t stage,
                           const RankMessages& messages) {
  StageMessages slowest;
  const auto raise = [&](Nanos& sent, Nanos& received, std::int32_t other) {
    const std::int32_t here = schedule.rank_of_stage[stage];
    const std::int32_t there = schedule.rank_of_stage[other];
    if (here == there) return;
    sent = std::max(sent, messages.between(here, there).whole);
    received = std::max(received, messages.between(there, here).whole);
  };
  for_each_reader(schedule, stage, [&](std::int32_t reader) {
    raise(slowest.sent_activation, slowest.received_gradient, reader);
  });
  for_each_input(schedule, stage, [&](std::int32_t input) {
    raise(slowest.sent_gradient, slowest.received_activation, input);
  });
  return slowest;
}

/// Adds the exposed part of messages to the ops that send them, and to those that receive them.
void expose_messages(CostModel& costs, const Schedule& schedule, const RankMessages& messages,
                     const CostAssumptions& assumed) {
  if (assumed.message_exposed == 0) return;
  const auto slices = static_cast<std::size_t>(costs.slices);
  for (std::int32_t stage = 0; stage < schedule.stages(); ++stage) {
    const StageMessages slowest = find_slowest(schedule, stage, messages);
    const auto waited = [&](Nanos sent, Nanos received) {
      const double both =
          static_cast<double>(sent) + assumed.receives_exposed * static_cast<double>(received);
      return round_nanos(assumed.message_exposed * both, "a message");
    };
    const Nanos forward = waited(slowest.sent_activation, slowest.received_activation);
    const Nanos backward = waited(slowest.sent_gradient, slowest.received_gradient);
    for (std::size_t slice = 0; slice < slices; ++slice) {
      StageCost& cost = costs.stages[static_cast<std::size_t>(stage) * slices + slice];
      cost.forward += forward;
      cost.input_grad += backward;
      cost.backward += backward;
    }
  }
}

StageCost make_slice_cost(const PhaseTimes& times, std::int32_t slices) {
  StageCost cost;
  cost.forward = cost.recompute = round_nanos(times.forward / slices, "the forward of a stage");
  cost.input_grad = round_nanos(times.input_grad / slices, "the input gradient of a stage");
  cost.weight_grad = round_nanos(times.weight_grad / slices, "the weight gradient of a stage");
  cost.backward = cost.input_grad + cost.weight_grad;
  return cost;
}

/// The time of an overlapped pair. `waits` is how long both halves would wait for the experts'
/// all-to-all; in a pair it runs beside the other half's compute, which it slows down like any
/// hidden collective. One host launches both, in `host`. Assumes that the backward is of the same
/// stage.
Nanos estimate_pair_time(const StageCost& cost, const ModelOnDevices& on, double waits,
                         double host) {
  const double both = static_cast<double>(cost.forward + cost.backward);
  const double hidden = std::min(waits, both - waits) * (1 - on.assumptions.collective_sms);
  return std::max<Nanos>({cost.forward, std::llround(both - hidden), std::llround(host)});
}

/// Places the stages of a model that can be placed. Throws Error for others.
PlacedStages place_checked(const ModelOnDevices& on, const Schedule& schedule) {
  const std::int32_t shards = schedule.side_stages;
  if (!schedule.graph.is_chain() && shards == 0)
    throw Error(Fault::kProblem, "`model` is a chain of layers, and the stages of " +
                                     schedule.name + " are a graph; give `costs` for every stage");
  expect_divisible(on);
  expect_layers(on, schedule.stages_per_pipeline() - shards);
  return place_stages(on, schedule);
}

}  // namespace

MemoryDelta slice_memory(const MemoryDelta& whole, std::int32_t slices) {
  const Bytes forward = whole.forward / slices;
  const Bytes weight_grad = whole.weight_grad / slices;
  return {forward, -forward - weight_grad, weight_grad};
}

StateBytes count_rank_states(const ModelOnDevices& on, const RankBuffers& buffers,
                             const RankLoad& load) {
  StateBytes states = count_states(on.parallel, load.parameters);
  states.buffers = buffers.count(load);
  if (!on.trains) states.gradients = states.optimizer = 0;
  return states;
}

ModelStep compute_model_step(const ModelOnDevices& on, const Schedule& schedule) {
  const PlacedStages placed = place_checked(on, schedule);
  const std::vector<StageLoad>& stages = placed.loads;
  const std::int32_t count = schedule.stages_per_pipeline();
  const std::int32_t slices = schedule.shape.slices;
  ModelStep step;
  step.first_layer = placed.first_layer;
  step.splits_vocabulary = schedule.side_stages > 0;
  step.costs.slices = slices;
  const RankMessages messages(on, schedule.shape);
  messages.set_hidden(step.costs);
  step.costs.norm = estimate_norm_time(on, schedule.shape.ranks);
  for (std::int32_t stage = 0; stage < schedule.stages(); ++stage) {
    const StageLoad& load = stages[static_cast<std::size_t>(stage % count)];
    std::optional<ModelOnDevices> own;
    if (!on.rank_gpus.empty())
      own = on_device_of(on, schedule.rank_of_stage[static_cast<std::size_t>(stage)]);
    const ModelOnDevices& here = own ? *own : on;
    const StageSharing sharing =
        find_sharing(schedule, schedule.replicas(stage) * schedule.pipelines);
    StageCost cost =
        make_slice_cost(with_sharding(load.times, here, load.parameters, sharing), slices);
    if (on.assumptions.pairs_hide_exchange && load.exchange > 0)
      cost.overlapped_pair =
          estimate_pair_time(cost, on, load.exchange / slices, load.host.total() / slices);
    step.costs.stages.insert(step.costs.stages.end(), static_cast<std::size_t>(slices), cost);
    step.costs.updates.push_back(estimate_update_cost(here, load.parameters, load.times, sharing));
    step.activation_bytes.push_back(on.trains ? slice_memory(load.memory, slices) : MemoryDelta{});
  }
  if (on.counts_gathered && on.parallel.zero_stage >= 3)
    step.gathered_bytes = count_gathered_bytes(schedule, stages);
  expose_messages(step.costs, schedule, messages, on.assumptions);
  const RankBuffers buffers(on, schedule.shape);
  for (const RankLoad& load : sum_rank_loads(schedule, stages))
    step.states.push_back(count_rank_states(on, buffers, load));
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

Bytes min_bytes(const ModelOnDevices& on, const Schedule& schedule) {
  const PlacedStages placed = place_checked(on, schedule);
  const auto forward_less = [](const StageLoad& left, const StageLoad& right) {
    return left.memory.forward < right.memory.forward;
  };
  const auto [smallest, largest] =
      std::minmax_element(placed.loads.begin(), placed.loads.end(), forward_less);
  const auto activations = [&](const StageLoad& load) {
    return on.trains ? slice_memory(load.memory, schedule.shape.slices).forward : 0;
  };
  Bytes sum = 0;
  Bytes context = 0;
  const std::vector<RankLoad> ranks = sum_rank_loads(schedule, placed.loads);
  const RankBuffers buffers(on, schedule.shape);
  for (const RankLoad& load : ranks) {
    const StateBytes states = count_rank_states(on, buffers, load);
    sum += states.total();
    context = states.context;
  }
  const Bytes mean = sum / static_cast<Bytes>(ranks.size());
  return std::max(mean + activations(*smallest), context + activations(*largest));
}

}  // namespace bubblescope::inline sim

// Stages from layers, ranks from stages.
#include "sim/model/model_step.h"

#include <algorithm>
#include <cmath>

#include "sim/ir/error.h"
#include "sim/model/activation_bytes.h"

namespace bubblescope {

namespace {

constexpr Bytes kContext = Bytes{2} << 30;  ///< CUDA's and NCCL's own; assumed
constexpr double kGradientAndMaster = 12;   ///< bytes of Adam's two moments and the master weight

void expect_divisible(const ModelOnDevices& on) {
  const auto refuse = [](const std::string& why) { throw Error(Fault::kProblem, why); };
  if (on.model.heads % on.parallel.tensor != 0)
    refuse("--tp must divide the " + std::to_string(on.model.heads) + " heads");
  if (on.parallel.sequence % (std::int64_t{on.parallel.context} * on.parallel.tensor) != 0)
    refuse("--cp times --tp must divide the sequence of " + std::to_string(on.parallel.sequence));
  const std::int64_t experts = on.model.experts ? on.model.experts->count : 1;
  if (experts % on.parallel.expert != 0)
    refuse("--ep must divide the " + std::to_string(experts) + " experts");
  if ((std::int64_t{on.parallel.data} * on.parallel.context) % on.parallel.expert != 0)
    refuse("--ep must divide --dp times --cp");
}

/// Parameters of one stage, as one tensor rank holds them.
struct StageParameters {
  double dense = 0;    ///< of which every data rank has a copy
  double experts = 0;  ///< of which data / expert ranks have a copy
};

/// Layers that are all alike.
struct LayerKind {
  std::int64_t end = 0;  ///< the first layer that is of another kind
  PhaseTimes times;
  MemoryDelta memory;
  LayerParameters parameters;
};

LayerKind kind_of(const ModelOnDevices& on, std::int64_t layer, std::int64_t end) {
  return {end, layer_times(on, layer), layer_memory(on.model, on.parallel, layer),
          parameters_of_layer(on.model, layer)};
}

double total(const PhaseTimes& times) {
  return times.forward + times.input_grad + times.weight_grad;
}

/// What a stage of one pipeline takes and holds.
struct StageLoad {
  std::int64_t layers = 0;
  PhaseTimes times;
  MemoryDelta memory{0, 0, 0};
  StageParameters parameters;

  void add_times(const PhaseTimes& more, std::int64_t count) {
    const auto factor = static_cast<double>(count);
    times += {factor * more.forward, factor * more.input_grad, factor * more.weight_grad};
  }
  void add_memory(const MemoryDelta& more, std::int64_t count) {
    memory.forward += count * more.forward;
    memory.input_grad += count * more.input_grad;
    memory.weight_grad += count * more.weight_grad;
  }
};

/// The stages of one pipeline.
class Stages {
 public:
  Stages(const ModelOnDevices& on, std::int32_t count) : on_(on), count_(count) {
    const std::int64_t layers = on.model.layers;
    const std::int64_t dense = on.model.experts ? on.model.experts->dense_layers : 0;
    if (dense > 0) kinds_.push_back(kind_of(on, 0, std::min(dense, layers)));
    if (dense < layers) kinds_.push_back(kind_of(on, layers - 1, layers));
    const double layer = total(kinds_.back().times);
    const Parallelism& parallel = on.parallel;
    first_layer_ =
        split_layers(layers, count,
                     {parallel.embedding_layers.value_or(total(embedding_times(on)) / layer),
                      parallel.head_layers.value_or(total(head_times(on)) / layer)});
  }

  const std::vector<std::int64_t>& first_layer() const { return first_layer_; }

  StageLoad load(std::int32_t stage) const {
    StageLoad sum;
    std::int64_t layer = first_layer_[static_cast<std::size_t>(stage)];
    const std::int64_t end = first_layer_[static_cast<std::size_t>(stage) + 1];
    for (const LayerKind& kind : kinds_) {
      const std::int64_t count = std::max<std::int64_t>(0, std::min(end, kind.end) - layer);
      add_layers(sum, kind, count);
      layer += count;
    }
    if (stage == 0) add_embedding(sum);
    if (stage == count_ - 1) add_head(sum);
    return sum;
  }

 private:
  void add_layers(StageLoad& sum, const LayerKind& kind, std::int64_t count) const {
    const LayerParameters& held = kind.parameters;
    const double tensor = on_.parallel.tensor;
    const auto factor = static_cast<double>(count);
    sum.layers += count;
    sum.add_times(kind.times, count);
    sum.add_memory(kind.memory, count);
    sum.parameters.dense += factor * (static_cast<double>(held.attention + held.network) / tensor +
                                      static_cast<double>(held.norms));
    sum.parameters.experts +=
        factor * static_cast<double>(held.experts) / tensor / on_.parallel.expert;
  }

  void add_embedding(StageLoad& sum) const {
    sum.add_times(embedding_times(on_), 1);
    sum.add_memory(embedding_memory(on_.model, on_.parallel), 1);
    sum.parameters.dense +=
        static_cast<double>(embedding_parameters(on_.model)) / on_.parallel.tensor;
  }

  void add_head(StageLoad& sum) const {
    sum.add_times(head_times(on_), 1);
    sum.add_memory(head_memory(on_.model, on_.parallel), 1);
    if (on_.model.tied_embeddings && count_ == 1) return;
    sum.parameters.dense += static_cast<double>(head_parameters(on_.model)) / on_.parallel.tensor;
  }

  const ModelOnDevices& on_;
  std::int32_t count_;
  std::vector<LayerKind> kinds_;
  std::vector<std::int64_t> first_layer_;
};

/// What all stages of a rank take and hold.
struct RankLoad {
  std::int64_t layers = 0;
  PhaseTimes times;
  StageParameters parameters;

  double all_parameters() const { return parameters.dense + parameters.experts; }
  void operator+=(const StageLoad& stage) {
    layers += stage.layers;
    times += stage.times;
    parameters.dense += stage.parameters.dense;
    parameters.experts += stage.parameters.experts;
  }
};

/// Bytes of the states of so many parameters, of which `copies` ranks hold a copy.
StateBytes states_of(double parameters, double copies, std::int32_t zero_stage) {
  const auto shared = [&](double bytes, bool sharded) {
    return static_cast<Bytes>(std::llround(parameters * bytes / (sharded ? copies : 1)));
  };
  StateBytes states;
  states.weights = shared(2, zero_stage >= 3);
  states.gradients = shared(4, zero_stage >= 2);
  states.optimizer = shared(kGradientAndMaster, zero_stage >= 1);
  return states;
}

void add(StateBytes& sum, const StateBytes& more) {
  sum.weights += more.weights;
  sum.gradients += more.gradients;
  sum.optimizer += more.optimizer;
}

double message_bytes(const ModelOnDevices& on) {
  return 2.0 * static_cast<double>(on.parallel.tokens() * on.model.hidden) /
         on.parallel.norm_split();
}

/// Of every pair of ranks, by the nodes on which they are.
std::vector<Nanos> messages_between(const ModelOnDevices& on, std::int32_t ranks) {
  const std::int64_t stride =
      std::int64_t{on.parallel.tensor} * on.parallel.context * on.parallel.data;
  std::vector<Nanos> messages;
  for (std::int64_t from = 0; from < ranks; ++from)
    for (std::int64_t to = 0; to < ranks; ++to) {
      const bool one_node = from * stride / on.gpu.per_node == to * stride / on.gpu.per_node;
      messages.push_back((one_node ? on.gpu.inside : on.gpu.outside).time(message_bytes(on)));
    }
  return messages;
}

/// Buffers of a rank: two messages each way; a layer that is computed again; gathered weights.
Bytes buffer_bytes(const ModelOnDevices& on, std::size_t ranks, const RankLoad& load) {
  Bytes buffers = ranks > 1 ? static_cast<Bytes>(4 * message_bytes(on)) : 0;
  if (on.parallel.recompute == Recompute::kFull) {
    Parallelism whole = on.parallel;
    whole.recompute = Recompute::kNone;
    buffers += layer_memory(on.model, whole, on.model.layers - 1).forward;
  }
  if (on.parallel.zero_stage >= 3 && load.layers > 0)
    buffers += static_cast<Bytes>(4 * load.all_parameters() / static_cast<double>(load.layers));
  return buffers;
}

/// The fullest rank's gradients, reduced while the last micro-batch's backward still runs; then the
/// update of a shard, and the new weights gathered while the next step's first forward runs.
void add_tail(const ModelOnDevices& on, const RankLoad& load, ModelStep& step) {
  const Parallelism& parallel = on.parallel;
  const std::int32_t copies = parallel.data * parallel.context;
  const double parameters = load.all_parameters();
  const Link& link = group_link(on.gpu, copies, parallel.tensor);
  const bool sharded = parallel.zero_stage >= 1;
  const Nanos reduce = sharded ? all_gather_time(4 * parameters, copies, link)
                               : all_reduce_time(4 * parameters, copies, link);
  const Nanos gather = sharded ? all_gather_time(2 * parameters, copies, link) : 0;
  const auto exposed = [&](Nanos time, double overlapped) {
    return std::max<Nanos>(time / 16, time - static_cast<Nanos>(overlapped));
  };
  step.gradient_sync = exposed(reduce, load.times.input_grad + load.times.weight_grad);
  const double bytes = parameters / (sharded ? copies : 1) * 30;  // 16 read, 14 written
  const double rate = on.gpu.memory_bytes_per_second * on.assumptions.memory_rate;
  step.optimizer = static_cast<Nanos>(bytes / rate * 1e9) + exposed(gather, load.times.forward);
}

StageCost slice_cost(const PhaseTimes& times, std::int32_t slices) {
  StageCost cost;
  cost.forward = cost.recompute = std::llround(times.forward / slices);
  cost.input_grad = std::llround(times.input_grad / slices);
  cost.weight_grad = std::llround(times.weight_grad / slices);
  cost.backward = cost.input_grad + cost.weight_grad;
  return cost;
}

MemoryDelta slice_memory(const MemoryDelta& whole, std::int32_t slices) {
  const Bytes forward = whole.forward / slices;
  const Bytes weight_grad = whole.weight_grad / slices;
  return {forward, -forward - weight_grad, weight_grad};
}

StateBytes states_of_rank(const ModelOnDevices& on, const RankLoad& load, std::size_t ranks) {
  const double copies = double{1} * on.parallel.data * on.parallel.context;
  StateBytes states;
  add(states, states_of(load.parameters.dense, copies, on.parallel.zero_stage));
  add(states,
      states_of(load.parameters.experts, copies / on.parallel.expert, on.parallel.zero_stage));
  states.buffers = buffer_bytes(on, ranks, load);
  states.context = kContext;
  return states;
}

}  // namespace

ModelStep model_step(const ModelOnDevices& on, const Schedule& schedule) {
  expect_divisible(on);
  const std::int32_t count = schedule.stages_per_pipeline();
  if (on.model.layers + 2 < count)  // the embedding and the head may have a stage of their own
    throw Error(Fault::kProblem, "the model has " + std::to_string(on.model.layers) +
                                     " layers for " + std::to_string(count) +
                                     " stages; ask for fewer");
  const Stages stages(on, count);
  ModelStep step;
  step.first_layer = stages.first_layer();
  step.costs.slices = schedule.shape.slices;
  step.costs.message_between = messages_between(on, schedule.shape.ranks);
  std::vector<RankLoad> loads(static_cast<std::size_t>(schedule.shape.ranks));
  for (std::int32_t stage = 0; stage < schedule.stages(); ++stage) {
    const StageLoad load = stages.load(stage % count);
    const StageCost cost = slice_cost(load.times, schedule.shape.slices);
    step.costs.stages.insert(step.costs.stages.end(),
                             static_cast<std::size_t>(schedule.shape.slices), cost);
    step.activation_bytes.push_back(slice_memory(load.memory, schedule.shape.slices));
    loads[static_cast<std::size_t>(schedule.rank_of_stage[stage])] += load;
  }
  for (const RankLoad& load : loads) step.states.push_back(states_of_rank(on, load, loads.size()));
  add_tail(on,
           *std::max_element(loads.begin(), loads.end(),
                             [](const RankLoad& a, const RankLoad& b) {
                               return a.all_parameters() < b.all_parameters();
                             }),
           step);
  return step;
}

ModelStep model_step(const ModelOnDevices& on, const Shape& shape) {
  Schedule unordered;
  unordered.shape = shape;
  unordered.rank_of_stage = loop_placement(shape.ranks, shape.chunks);
  return model_step(on, unordered);
}

Bytes least_bytes(const ModelStep& step) {
  Bytes least = 0;
  for (const StateBytes& states : step.states) least = std::max(least, states.total());
  Bytes activations = 0;
  for (const MemoryDelta& delta : step.activation_bytes)
    activations = std::max(activations, delta.forward);
  return std::max(least, activations);
}

}  // namespace bubblescope

// Assigns layers to stages, and adds the parts that only the first and the last stage hold.
#include "sim/model/stage_loads.h"

#include <algorithm>
#include <numeric>
#include <string>

#include "sim/ir/error.h"
#include "sim/model/activation_bytes.h"

namespace bubblescope::inline sim {

namespace {

double total(const PhaseTimes& times) {
  return times.forward + times.input_grad + times.weight_grad;
}

LayerKind kind_of(const ModelOnDevices& on, std::int64_t layer) {
  const LayerParameters held = count_layer_parameters(on.model, layer);
  const double tensor = on.parallel.tensor;
  const StageParameters parameters{
      static_cast<double>(held.attention + held.network) / tensor + static_cast<double>(held.norms),
      static_cast<double>(held.experts) / on.parallel.expert_split() / on.parallel.expert};
  PhaseTimes times = estimate_layer_times(on, layer);
  times.weight_grad += estimate_accumulation_time(on, parameters.all());
  return {has_experts(on.model, layer), times, estimate_layer_memory(on.model, on.parallel, layer),
          parameters, exposed_exchange_time(on, layer)};
}

void add_memory(MemoryDelta& sum, const MemoryDelta& more, std::int64_t count) {
  sum.forward += count * more.forward;
  sum.input_grad += count * more.input_grad;
  sum.weight_grad += count * more.weight_grad;
}

std::vector<std::int64_t> split_as_given(const ModelOnDevices& on, std::int32_t stages) {
  const std::vector<std::int64_t>& given = on.parallel.layers_of_stage;
  const std::int64_t sum = std::accumulate(given.begin(), given.end(), std::int64_t{0});
  if (given.size() != static_cast<std::size_t>(stages) || sum != on.model.layers)
    throw Error(Fault::kProblem, "`layout` has " + std::to_string(sum) + " layers t on " +
                                     std::to_string(given.size()) + " stages; write the model's " +
                                     std::to_string(on.model.layers) + " on " +
                                     std::to_string(stages));
  std::vector<std::int64_t> first_layer{0};
  for (const std::int64_t layers : given) first_layer.push_back(first_layer.back() + layers);
  return first_layer;
}

/// The embedding and the head count by their time relative to a layer, unless given. The head
/// counts nothing where shards hold it.
std::vector<std::int64_t> split_evenly(const ModelOnDevices& on, std::int32_t stages,
                                       double layer_time, bool has_head) {
  const Parallelism& parallel = on.parallel;
  const double head = has_head ? total(estimate_head_times(on)) : 0;
  const double tail = head + total(estimate_prediction_times(on));
  return split_layers(
      on.model.layers, stages,
      {parallel.embedding_layers.value_or(total(estimate_embedding_times(on)) / layer_time),
       parallel.head_layers.value_or(tail / layer_time)});
}

}  // namespace

void StageLoad::add(const LayerKind& kind, std::int64_t count) {
  const auto factor = static_cast<double>(count);
  layers += count;
  times += {factor * kind.times.forward, factor * kind.times.input_grad,
            factor * kind.times.weight_grad};
  add_memory(memory, kind.memory, count);
  parameters += {factor * kind.parameters.dense, factor * kind.parameters.experts};
  exchange += factor * kind.exchange;
}

StageLoads::StageLoads(const ModelOnDevices& on, std::int32_t stages, std::int32_t shards)
    : on_(on), stages_(stages), shards_(shards) {
  if (shards > 0 && on.model.predictions > 0)
    throw Error(Fault::kProblem,
                "the model's multi-token predictions have heads of their own, which this schedule "
                "does not split; describe the model without them");
  for (std::int64_t layer = 0; layer < on.model.layers && kinds_.size() < 2; ++layer)
    if (kinds_.empty() || kinds_[0].experts != has_experts(on.model, layer))
      kinds_.push_back(kind_of(on, layer));
  std::stable_sort(kinds_.begin(), kinds_.end(), [](const LayerKind& left, const LayerKind& right) {
    return left.experts < right.experts;
  });
  first_layer_ = on.parallel.layers_of_stage.empty()
                     ? split_evenly(on, stages, layer_time(), shards == 0)
                     : split_as_given(on, stages);
}

double StageLoads::layer_time() const {
  const double last = total(kinds_.back().times);
  if (kinds_.size() < 2) return last;
  const auto every = static_cast<double>(on_.model.experts->every);
  return (last + (every - 1) * total(kinds_[0].times)) / every;
}

StageLoad StageLoads::load(std::int32_t stage) const {
  const auto at = static_cast<std::size_t>(stage);
  return load(stage, first_layer_[at], first_layer_[at + 1]);
}

StageLoad StageLoads::load(std::int32_t stage, std::int64_t first, std::int64_t end) const {
  StageLoad sum;
  const std::int64_t experts = count_expert_layers(on_.model, first, end);
  for (const LayerKind& kind : kinds_)
    sum.add(kind, kind.experts ? experts : end - first - experts);
  if (stage == 0) add_embedding(sum);
  if (stage == stages_ - 1) {
    if (shards_ == 0) add_head(on_, sum);
    add_predictions(sum);
  }
  if (sum.layers > 0) sum.times = apply_host_limit(on_, sum.times, sum.layers);
  return sum;
}

StageLoad StageLoads::load_shard() const {
  ModelOnDevices part = on_;
  part.model.vocabulary = (on_.model.vocabulary + shards_ - 1) / shards_;
  StageLoad sum;
  add_head(part, sum);
  return sum;
}

void StageLoads::add_embedding(StageLoad& sum) const {
  sum.times += estimate_embedding_times(on_);
  add_memory(sum.memory, estimate_embedding_memory(on_.model, on_.parallel), 1);
  const double table =
      static_cast<double>(count_embedding_parameters(on_.model)) / on_.parallel.tensor;
  sum.times.weight_grad += estimate_accumulation_time(on_, table);
  sum.parameters.dense += table;
  sum.tables += table;
}

/// `on` is the model, or a copy whose vocabulary is that of one shard.
void StageLoads::add_head(const ModelOnDevices& on, StageLoad& sum) const {
  sum.times += estimate_head_times(on);
  add_memory(sum.memory, estimate_head_memory(on.model, on.parallel), 1);
  const double table = static_cast<double>(count_head_parameters(on.model)) / on.parallel.tensor;
  sum.times.weight_grad += estimate_accumulation_time(on, table);
  if (on.model.tied_embeddings && stages_ == 1) return;
  sum.parameters.dense += table;
  sum.tables += table;
}

/// Each module is a layer after the last one. It shares the head, and the embedding if that is on
/// the same stage.
void StageLoads::add_predictions(StageLoad& sum) const {
  const std::int64_t count = on_.model.predictions;
  if (count == 0) return;
  const double tensor = on_.parallel.tensor;
  sum.times += estimate_prediction_times(on_);
  add_memory(sum.memory, estimate_prediction_memory(on_.model, on_.parallel), 1);
  const bool experts = has_experts(on_.model, on_.model.layers - 1);
  const LayerKind& last = kinds_[kinds_[0].experts == experts ? 0 : kinds_.size() - 1];
  sum.parameters += {static_cast<double>(count) * last.parameters.dense,
                     static_cast<double>(count) * last.parameters.experts};
  sum.parameters.dense +=
      static_cast<double>(count * count_prediction_projection_parameters(on_.model)) / tensor;
  if (stages_ > 1)
    sum.parameters.dense += static_cast<double>(count_embedding_parameters(on_.model)) / tensor;
}

}  // namespace bubblescope::inline sim

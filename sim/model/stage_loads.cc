// Sums up layers, and adds the parts that only the first and the last stage hold.
#include "sim/model/stage_loads.h"

#include <algorithm>

#include "sim/ir/error.h"
#include "sim/model/activation_bytes.h"

namespace bubblescope::inline sim {

namespace {

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

void StageLoad::add(const StageLoad& more) {
  layers += more.layers;
  times += more.times;
  add_memory(memory, more.memory, 1);
  parameters += more.parameters;
  tables += more.tables;
  exchange += more.exchange;
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
  const double part = 1 / static_cast<double>(on.model.layers);
  const PhaseTimes all = times_of_layers(0, on.model.layers);
  expert_share_ = part * static_cast<double>(count_expert_layers(on.model, 0, on.model.layers));
  mean_layer_ = {part * all.forward, part * all.input_grad, part * all.weight_grad};
  embedding_ = load_embedding();
  if (shards == 0) tail_ = load_head(on);
  tail_.add(load_predictions());
}

double StageLoads::layer_time() const {
  const double last = kinds_.back().times.total();
  if (kinds_.size() < 2) return last;
  const auto every = static_cast<double>(on_.model.experts->every);
  return (last + (every - 1) * kinds_[0].times.total()) / every;
}

StageLoad StageLoads::load(std::int32_t stage, std::int64_t first, std::int64_t end) const {
  StageLoad sum;
  const std::int64_t experts = count_expert_layers(on_.model, first, end);
  for (const LayerKind& kind : kinds_)
    sum.add(kind, kind.experts ? experts : end - first - experts);
  if (stage == 0) sum.add(embedding_);
  if (stage == stages_ - 1) sum.add(tail_);
  if (sum.layers > 0)
    sum.times = apply_host_limit(on_, sum.times,
                                 {static_cast<double>(sum.layers), static_cast<double>(experts)});
  return sum;
}

PhaseTimes StageLoads::times_of_layers(std::int64_t first, std::int64_t end) const {
  PhaseTimes sum;
  const std::int64_t experts = count_expert_layers(on_.model, first, end);
  for (const LayerKind& kind : kinds_) {
    const auto count = static_cast<double>(kind.experts ? experts : end - first - experts);
    sum +=
        {count * kind.times.forward, count * kind.times.input_grad, count * kind.times.weight_grad};
  }
  return sum;
}

double StageLoads::split_time(std::int32_t stage, std::int64_t first, std::int64_t end) const {
  return add_tables_to(times_of_layers(first, end), stage, end - first);
}

double StageLoads::mean_split_time(std::int32_t stage, std::int64_t layers) const {
  const auto count = static_cast<double>(layers);
  return add_tables_to({count * mean_layer_.forward, count * mean_layer_.input_grad,
                        count * mean_layer_.weight_grad},
                       stage, layers);
}

double StageLoads::add_tables_to(PhaseTimes times, std::int32_t stage, std::int64_t layers) const {
  double given = 0;
  const auto add = [&](const StageLoad& table, const std::optional<double>& counts_as) {
    if (counts_as)
      given += *counts_as * layer_time();
    else
      times += table.times;
  };
  if (stage == 0) add(embedding_, on_.parallel.embedding_layers);
  if (stage == stages_ - 1) add(tail_, on_.parallel.head_layers);
  const auto count = static_cast<double>(layers);
  if (layers > 0) times = apply_host_limit(on_, times, {count, count * expert_share_});
  return times.total() + given;
}

StageLoad StageLoads::load_shard() const {
  ModelOnDevices part = on_;
  part.model.vocabulary = (on_.model.vocabulary + shards_ - 1) / shards_;
  StageLoad shard = load_head(part);
  if (on_.model.tied_embeddings && stages_ > 1) return shard;
  const double words = static_cast<double>(count_head_parameters(part.model)) / on_.parallel.tensor;
  shard.times.weight_grad += estimate_accumulation_time(on_, words);
  shard.parameters.dense += words;
  shard.tables += words;
  return shard;
}

StageLoad StageLoads::load_embedding() const {
  StageLoad load;
  load.times = estimate_embedding_times(on_);
  load.memory = estimate_embedding_memory(on_.model, on_.parallel);
  double table = static_cast<double>(count_embedding_parameters(on_.model)) / on_.parallel.tensor;
  if (shards_ > 0)  // shards hold the words, and the first stage the positions
    table -= static_cast<double>(count_head_parameters(on_.model)) / on_.parallel.tensor;
  load.times.weight_grad += estimate_accumulation_time(on_, table);
  load.parameters.dense = load.tables = table;
  return load;
}

/// `on` is the model, or a copy whose vocabulary is that of one shard.
StageLoad StageLoads::load_head(const ModelOnDevices& on) const {
  StageLoad load;
  load.times = estimate_head_times(on);
  load.memory = estimate_head_memory(on.model, on.parallel);
  const double table = static_cast<double>(count_head_parameters(on.model)) / on.parallel.tensor;
  load.times.weight_grad += estimate_accumulation_time(on, table);
  if (on.model.tied_embeddings && stages_ == 1) return load;
  load.parameters.dense = load.tables = table;
  return load;
}

/// Each module is a layer after the last one. It shares the head, and the embedding if that is on
/// the same stage.
StageLoad StageLoads::load_predictions() const {
  StageLoad load;
  const std::int64_t count = on_.model.predictions;
  if (count == 0) return load;
  const double tensor = on_.parallel.tensor;
  load.times = estimate_prediction_times(on_);
  load.memory = estimate_prediction_memory(on_.model, on_.parallel);
  const bool experts = has_experts(on_.model, on_.model.layers - 1);
  const LayerKind& last = kinds_[kinds_[0].experts == experts ? 0 : kinds_.size() - 1];
  load.parameters = {static_cast<double>(count) * last.parameters.dense,
                     static_cast<double>(count) * last.parameters.experts};
  load.parameters.dense +=
      static_cast<double>(count * count_prediction_projection_parameters(on_.model)) / tensor;
  if (stages_ > 1)
    load.parameters.dense += static_cast<double>(count_embedding_parameters(on_.model)) / tensor;
  return load;
}

}  // namespace bubblescope::inline sim

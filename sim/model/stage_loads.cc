// Sums up layers, and adds the parts that only the first and the last stage hold.
#include "sim/model/stage_loads.h"

#include <algorithm>

#include "sim/ir/error.h"
#include "sim/model/activation_bytes.h"
#include "sim/model/layer_recompute.h"

namespace bubblescope::inline sim {

namespace {

LayerKind kind_of(const ModelOnDevices& on, std::int64_t layer) {
  const LayerParameters held = count_layer_parameters(on.model, layer);
  const double tensor = on.parallel.tensor;
  const StageParameters parameters{
      static_cast<double>(held.attention + held.network) / tensor + static_cast<double>(held.norms),
      static_cast<double>(held.experts) / on.parallel.expert_split() / on.parallel.expert, 1};
  PhaseTimes times = estimate_layer_times(on, layer);
  times.weight_grad += estimate_accumulation_time(on, parameters.all());
  const double exchanges = on.parallel.recompute == Recompute::kFull ? 3 : 2;
  return {has_experts(on.model, layer), times, estimate_layer_memory(on.model, on.parallel, layer),
          parameters, exchanges * exposed_exchange_time(on, layer)};
}

/// Those without experts come first.
std::vector<LayerKind> find_kinds(const ModelOnDevices& on) {
  std::vector<LayerKind> kinds;
  for (std::int64_t layer = 0; layer < on.model.layers && kinds.size() < 2; ++layer)
    if (kinds.empty() || kinds[0].experts != has_experts(on.model, layer))
      kinds.push_back(kind_of(on, layer));
  std::stable_sort(kinds.begin(), kinds.end(), [](const LayerKind& left, const LayerKind& right) {
    return left.experts < right.experts;
  });
  return kinds;
}

/// Calls `add` with each kind and how many of the layers from `first` to before `end` are of it.
template <class Add>
void for_each(const std::vector<LayerKind>& kinds, const Transformer& model, std::int64_t first,
              std::int64_t end, const Add& add) {
  const std::int64_t experts = count_expert_layers(model, first, end);
  for (const LayerKind& kind : kinds) add(kind, kind.experts ? experts : end - first - experts);
}

PhaseTimes scaled(const PhaseTimes& times, double factor) {
  return {factor * times.forward, factor * times.input_grad, factor * times.weight_grad};
}

/// The times of the mean layer of a model.
PhaseTimes mean_of(const std::vector<LayerKind>& kinds, const Transformer& model) {
  PhaseTimes sum;
  for_each(kinds, model, 0, model.layers, [&](const LayerKind& kind, std::int64_t count) {
    sum += scaled(kind.times, static_cast<double>(count));
  });
  return scaled(sum, 1 / static_cast<double>(model.layers));
}

/// Returns the mean time of those layers that follow the first dense ones.
double time_behind_dense(const std::vector<LayerKind>& kinds, const Transformer& model) {
  const double last = kinds.back().times.total();
  if (kinds.size() < 2) return last;
  const auto every = static_cast<double>(model.experts->every);
  return (last + (every - 1) * kinds[0].times.total()) / every;
}

void expect_groups(const ModelOnDevices& on) {
  const RecomputedLayers& layers = on.parallel.recomputed;
  if (on.parallel.recompute != Recompute::kFull || on.parallel.keeps_layers()) return;
  if (layers.number < 1)
    throw Error("`recompute_num_layers` 0 makes groups of no layers; give 1 or more");
  if (layers.number > 1 && on.model.predictions > 0)
    throw Error(Fault::kProblem,
                "the model's multi-token predictions are recomputed one layer at a time; give "
                "`recompute_num_layers` 1, or `recompute_method` block, which keeps them");
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
  times += scaled(kind.times, factor);
  add_memory(memory, kind.memory, count);
  parameters += {factor * kind.parameters.dense, factor * kind.parameters.experts,
                 factor * kind.parameters.layers};
  exchange += factor * kind.exchange;
}

void StageLoad::add(const StageLoad& more) {
  layers += more.layers;
  times += more.times;
  add_memory(memory, more.memory, 1);
  parameters += more.parameters;
  tables += more.tables;
  exchange += more.exchange;
  held_again = std::max(held_again, more.held_again);
}

StageLoads::StageLoads(const ModelOnDevices& on, std::int32_t stages, std::int32_t shards)
    : on_(on), stages_(stages), shards_(shards) {
  if (shards > 0 && on.model.predictions > 0)
    throw Error(Fault::kProblem,
                "the model's multi-token predictions have heads of their own, which this schedule "
                "does not split; describe the model without them");
  expect_groups(on);
  kinds_ = find_kinds(on);
  if (on.parallel.keeps_layers()) kept_kinds_ = find_kinds(without_recomputation(on));
  const auto layers = static_cast<double>(on.model.layers);
  expert_share_ =
      1 / layers * static_cast<double>(count_expert_layers(on.model, 0, on.model.layers));
  mean_layer_ = mean_covered_ = mean_of(kinds_, on.model);
  even_covered_ = covered_part(layers / stages);
  if (!kept_kinds_.empty()) {
    mean_kept_ = mean_of(kept_kinds_, on.model);
    mean_layer_ = scaled(mean_covered_, even_covered_) + scaled(mean_kept_, 1 - even_covered_);
  }
  embedding_ = load_embedding();
  if (shards == 0) tail_ = load_head(on);
  tail_.add(load_predictions());
}

double StageLoads::covered_part(double layers) const {
  if (kept_kinds_.empty()) return 1;
  const auto number = static_cast<double>(on_.parallel.recomputed.number);
  return number < layers ? number / layers : 1;
}

double StageLoads::layer_time() const {
  const double covered = time_behind_dense(kinds_, on_.model);
  if (kept_kinds_.empty()) return covered;
  return even_covered_ * covered + (1 - even_covered_) * time_behind_dense(kept_kinds_, on_.model);
}

StageLoad StageLoads::load(std::int32_t stage, std::int64_t first, std::int64_t end) const {
  StageLoad sum;
  const std::int64_t kept =
      kept_kinds_.empty() ? end : first + on_.parallel.recomputed.covered(end - first);
  const auto add = [&sum](const LayerKind& kind, std::int64_t count) { sum.add(kind, count); };
  for_each(kinds_, on_.model, first, kept, add);
  for_each(kept_kinds_, on_.model, kept, end, add);
  merge_groups(sum);
  if (stage == 0) sum.add(embedding_);
  if (stage == stages_ - 1) sum.add(tail_);
  const auto layers = static_cast<double>(sum.layers);
  const auto experts = static_cast<double>(count_expert_layers(on_.model, first, end));
  if (sum.layers == 0) return sum;
  const LaunchedLayers launched{layers, experts, covered_part(layers)};
  sum.host = estimate_host_times(on_, launched);
  sum.times = apply_host_limit(on_, sum.times, launched);
  return sum;
}

void StageLoads::merge_groups(StageLoad& stage) const {
  if (on_.parallel.recompute != Recompute::kFull) return;
  const RecomputedLayers& recomputed = on_.parallel.recomputed;
  stage.held_again = recomputed.held_again(stage.layers);
  // Full recomputation saves the input of a layer alone, which is the same for every kind.
  const Bytes merged = (recomputed.covered(stage.layers) - recomputed.saved_inputs(stage.layers)) *
                       kinds_.front().memory.forward;
  stage.memory.forward -= merged;
  stage.memory.input_grad += merged;
}

double StageLoads::split_time(std::int32_t stage, std::int64_t first, std::int64_t end) const {
  PhaseTimes sum = recomputed_beside();
  for_each(even_covered_ < 1 ? kept_kinds_ : kinds_, on_.model, first, end,
           [&](const LayerKind& kind, std::int64_t count) {
             sum += scaled(kind.times, static_cast<double>(count));
           });
  return add_tables_to(sum, stage, end - first);
}

PhaseTimes StageLoads::recomputed_beside() const {
  if (even_covered_ >= 1) return {};
  const auto number = static_cast<double>(on_.parallel.recomputed.number);
  return scaled(mean_covered_, number) + scaled(mean_kept_, -number);
}

double StageLoads::mean_split_time(std::int32_t stage, std::int64_t layers) const {
  const PhaseTimes& each = even_covered_ < 1 ? mean_kept_ : mean_covered_;
  return add_tables_to(scaled(each, static_cast<double>(layers)) + recomputed_beside(), stage,
                       layers);
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
  if (layers > 0)
    times = apply_host_limit(on_, times, {count, count * expert_share_, even_covered_});
  return times.total() + given;
}

StageLoad StageLoads::load_shard() const {
  ModelOnDevices part = on_;
  part.model.vocabulary = (on_.model.vocabulary + shards_ - 1) / shards_;
  StageLoad shard = load_head(part);
  const double words = static_cast<double>(count_head_parameters(part.model)) / on_.parallel.tensor;
  shard.times.weight_grad += estimate_accumulation_time(on_, words);
  if (on_.model.tied_embeddings && stages_ > 1) return shard;  // one table serves as both
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
  if (on_.parallel.recompute == Recompute::kFull && !on_.parallel.keeps_layers())
    load.held_again = 1;
  const bool experts = has_experts(on_.model, on_.model.layers - 1);
  const LayerKind& last = kinds_[kinds_[0].experts == experts ? 0 : kinds_.size() - 1];
  load.parameters = {static_cast<double>(count) * last.parameters.dense,
                     static_cast<double>(count) * last.parameters.experts,
                     static_cast<double>(count)};
  load.parameters.dense +=
      static_cast<double>(count * count_prediction_projection_parameters(on_.model)) / tensor;
  if (stages_ > 1)
    load.parameters.dense += static_cast<double>(count_embedding_parameters(on_.model)) / tensor;
  return load;
}

}  // namespace bubblescope::inline sim

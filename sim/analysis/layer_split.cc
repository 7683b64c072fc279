// Computes layer splits: balanced, even, with smaller ends, and limited by memory.
#include "sim/analysis/layer_split.h"

#include <algorithm>
#include <limits>

#include "sim/analysis/asynchronous.h"
#include "sim/model/megatron_counts.h"
#include "sim/model/model_step.h"

namespace bubblescope::inline sim {

namespace {

double time_of(const StageLoad& load) {
  return load.times.forward + load.times.input_grad + load.times.weight_grad;
}

/// The peak memory of a rank's ops. Memory is allocated when an op starts and released when it
/// ends, and ops run one after the other, so the running sums are the whole curve.
Bytes peak_of(const RankOrder& ops, const std::vector<MemoryDelta>& of_stage) {
  Bytes held = 0;
  Bytes peak = 0;
  for (const Op& op : ops) {
    held += of_stage[static_cast<std::size_t>(op.stage)](op.kind);
    peak = std::max(peak, held);
  }
  return peak;
}

}  // namespace

LayerAssigner::LayerAssigner(const ModelOnDevices& on, const ValidSchedule& schedule)
    : on_(on),
      schedule_(schedule),
      buffers_(on, schedule->shape),
      loads_(on, schedule),
      balanced_(loads_.balance()),
      stages_(loads_.holders().stages()) {
  for (const WeightReport& weights : account_for_weights(schedule, {}))
    versions_.push_back(std::max(1, weights.versions));
}

std::optional<LayerCounts> LayerAssigner::assign_layers(LayerSplit split) const {
  switch (split) {
    case LayerSplit::kBalanced: return balanced_;
    case LayerSplit::kEven: return even();
    case LayerSplit::kEnds: return ends();
    case LayerSplit::kFitted: return fitted();
  }
  return {};
}

std::optional<LayerCounts> LayerAssigner::even() const {
  if (on_.model.layers % stages_ != 0) return {};
  return LayerCounts(static_cast<std::size_t>(stages_), on_.model.layers / stages_);
}

/// The inner stages get as few layers as possible such that the two ends need no more than they
/// have. The remaining layers are divided between the ends so that the slower one is as fast as
/// possible; ties go to the last stage, as the first holds the most micro-batches.
std::optional<LayerCounts> LayerAssigner::ends() const {
  if (on_.parallel.ends.any())
    return place_megatron_counts(on_.model.layers, schedule_, on_.parallel.ends);
  if (stages_ < 3) return {};
  const std::int64_t layers = on_.model.layers;
  const std::int64_t between = (layers + stages_ - 1) / stages_;
  const std::int64_t rest = layers - between * (stages_ - 2);
  if (rest < 0) return {};
  std::int64_t best = 0;
  double lowest = std::numeric_limits<double>::infinity();
  for (std::int64_t first = std::max<std::int64_t>(0, rest - between);
       first <= std::min(between, rest); ++first) {
    const double slower =
        std::max(time_of(loads_.load(0, 0, first)),
                 time_of(loads_.load(stages_ - 1, layers - rest + first, layers)));
    if (slower >= lowest) continue;
    lowest = slower;
    best = first;
  }
  LayerCounts counts(static_cast<std::size_t>(stages_), between);
  counts.front() = best;
  counts.back() = rest - best;
  return counts;
}

/// Returns the load of a stage that holds that many of the model's last layers.
StageLoad LayerAssigner::last_layers_load(std::int32_t stage, std::int64_t layers) const {
  return loads_.load(stage, on_.model.layers - layers, on_.model.layers);
}

bool LayerAssigner::fits_in_memory(std::int32_t stage, const LayerCounts& counts) const {
  const auto& ranks = loads_.holders().ranks_of_stage[static_cast<std::size_t>(stage)];
  return std::all_of(ranks.begin(), ranks.end(), [&](std::int32_t rank) {
    const Bytes needed = held(rank, [&](std::int32_t other) {
      return last_layers_load(other, counts[static_cast<std::size_t>(other)]);
    });
    return needed <= on_.usable_memory(rank);
  });
}

std::optional<LayerCounts> LayerAssigner::fitted() const {
  if (balanced_ && load(*balanced_).fits()) return balanced_;
  return loads_.balance([this](std::int32_t stage, const LayerCounts& counts) {
    return fits_in_memory(stage, counts);
  });
}

Bytes LayerAssigner::held(std::int32_t rank, const LoadOfStage& load_of) const {
  const auto at = static_cast<std::size_t>(rank);
  const StageHolders& holders = loads_.holders();
  RankLoad load;
  std::vector<MemoryDelta> of_stage(static_cast<std::size_t>(schedule_.stages()));
  for (const std::int32_t stage : holders.stages_of_rank[at]) {
    const StageLoad held = load_of(stage);
    load.add(held);
    load.head = load.head || stage + 1 == stages_;
    for (std::int32_t copy = stage; copy < schedule_.stages() - schedule_.side_stages;
         copy += stages_)
      of_stage[static_cast<std::size_t>(copy)] = slice_memory(held.memory, schedule_.shape.slices);
  }
  if (const std::optional<StageLoad>& shard = loads_.shard()) {
    load.head = true;
    load.parameters += shard->parameters;
    load.tables += shard->tables;
    std::fill(of_stage.begin() + stages_, of_stage.end(),
              slice_memory(shard->memory, schedule_.shape.slices));
  }
  StateBytes states = count_rank_states(on_, buffers_, load);
  if (!versions_.empty()) states.weights *= versions_[at];
  return states.total() + peak_of(schedule_.order[at], of_stage);
}

SplitLoad LayerAssigner::load(const LayerCounts& counts) const {
  const StageHolders& holders = loads_.holders();
  const std::vector<std::int64_t> first = find_first_layers(counts);
  std::vector<StageLoad> loads;
  SplitLoad split;
  for (std::int32_t stage = 0; stage < stages_; ++stage) {
    const auto at = static_cast<std::size_t>(stage);
    loads.push_back(loads_.load(stage, first[at], first[at + 1]));
    split.slowest_stage = std::max(split.slowest_stage, holders.share[at] * time_of(loads.back()));
  }
  split.head_room = std::numeric_limits<Bytes>::max();
  for (std::int32_t rank = 0; rank < schedule_.shape.ranks; ++rank) {
    double time = loads_.shard() ? time_of(*loads_.shard()) : 0;
    for (const std::int32_t stage : holders.stages_of_rank[static_cast<std::size_t>(rank)]) {
      const auto at = static_cast<std::size_t>(stage);
      time += holders.share[at] * time_of(loads[at]);
    }
    split.slowest_rank = std::max(split.slowest_rank, time);
    const Bytes needed =
        held(rank, [&](std::int32_t stage) { return loads[static_cast<std::size_t>(stage)]; });
    const Bytes left = on_.usable_memory(rank) - needed;
    if (left >= split.head_room) continue;
    split.fullest_rank = needed;
    split.head_room = left;
  }
  return split;
}

std::vector<std::optional<LayerCounts>> LayerAssigner::select_splits(
    std::span<const LayerSplit> splits) const {
  std::vector<std::optional<LayerCounts>> worth(splits.size());
  std::vector<SplitLoad> before;
  const bool copies = !schedule_.offload_target_of_rank.empty();
  bool balanced_fits = false;
  for (std::size_t at = 0; at < splits.size(); ++at) {
    // If the balanced split fits, the fitted one is the same.
    if (splits[at] == LayerSplit::kFitted && balanced_fits) continue;
    std::optional<LayerCounts> counts = assign_layers(splits[at]);
    if (!counts || std::find(worth.begin(), worth.end(), counts) != worth.end()) continue;
    if (copies) {
      worth[at] = std::move(counts);
      break;
    }
    const SplitLoad mine = load(*counts);
    // Where both pipelines share the ranks, the loads of stages and ranks do not order the steps.
    const bool covered = schedule_.pipelines == 1 &&
                         std::any_of(before.begin(), before.end(),
                                     [&](const SplitLoad& other) { return other.dominates(mine); });
    const bool fits = mine.fits();
    balanced_fits = balanced_fits || (fits && splits[at] == LayerSplit::kBalanced);
    if (!before.empty() && (covered || !fits)) continue;
    before.push_back(mine);
    worth[at] = std::move(counts);
  }
  return worth;
}

}  // namespace bubblescope::inline sim

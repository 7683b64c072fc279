// The time and memory of a pipeline's stages, as sums over their layers.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/model/layer_cost.h"
#include "sim/model/memory_model.h"
#include "sim/model/stage_states.h"

namespace bubblescope::inline sim {

/// Identical layers: those with experts, or those without.
struct LayerKind {
  bool experts = false;
  PhaseTimes times;
  MemoryDelta memory;
  StageParameters parameters;
  double exchange = 0;  ///< the time that F and the backward wait for the experts' all-to-all
};

/// The sum over a stage's layers.
struct StageLoad {
  std::int64_t layers = 0;
  PhaseTimes times;
  PhaseTimes host;  ///< what estimate_host_times() says of its layers
  MemoryDelta memory{0, 0, 0};
  StageParameters parameters;
  double tables = 0;  ///< of `parameters`, those of the embedding and the head
  double exchange = 0;
  std::int64_t held_again = 0;  ///< RecomputedLayers::held_again of its layers

  void add(const LayerKind& kind, std::int64_t count);
  void add(const StageLoad& more);
};

/// The loads of a pipeline's stages, with any layers. Refers to the ModelOnDevices.
class StageLoads {
 public:
  /// With `shards`, no stage holds the head or the embedding of words: that many shards divide
  /// them. Throws Error for models whose predictions have heads of their own, and for groups of
  /// recomputed layers that the model cannot have.
  StageLoads(const ModelOnDevices& on, std::int32_t stages, std::int32_t shards = 0);

  /// Returns the load of a stage that holds the layers from `first` to before `end`.
  StageLoad load(std::int32_t stage, std::int64_t first, std::int64_t end) const;
  /// Returns the load of one shard, rounded up to whole words of the vocabulary.
  StageLoad load_shard() const;
  /// Returns the mean time of those layers that follow the first dense ones, in nanoseconds.
  double layer_time() const;
  /// The times of the mean layer, if every stage has as many.
  const PhaseTimes& mean_layer() const { return mean_layer_; }
  bool has_layers_alike() const { return kinds_.size() < 2; }

  /// The time by which layers are split, in nanoseconds. The embedding and the head count by their
  /// time, unless Parallelism says how many layers they count as; the head counts nothing where
  /// shards hold it.
  double split_time(std::int32_t stage, std::int64_t first, std::int64_t end) const;
  /// The same for a stage with `layers` mean layers.
  double mean_split_time(std::int32_t stage, std::int64_t layers) const;

 private:
  /// The part of a stage's layers that full recomputation covers; fractions are of mean layers.
  double covered_part(double layers) const;
  /// The time that a block's recomputed layers add to a stage. Splits count it for every stage
  /// alike: a stage without layers would spare it, while the stages around it wait.
  PhaseTimes recomputed_beside() const;
  /// Leaves out the inputs of layers that are recomputed with those before them.
  void merge_groups(StageLoad& stage) const;
  double add_tables_to(PhaseTimes times, std::int32_t stage, std::int64_t layers) const;
  StageLoad load_embedding() const;
  StageLoad load_head(const ModelOnDevices& on) const;
  StageLoad load_predictions() const;

  const ModelOnDevices& on_;
  std::int32_t stages_;
  std::int32_t shards_;
  std::vector<LayerKind> kinds_;
  std::vector<LayerKind> kept_kinds_;  ///< of layers that full recomputation leaves out
  PhaseTimes mean_covered_;            ///< of kinds_
  PhaseTimes mean_kept_;               ///< of kept_kinds_
  PhaseTimes mean_layer_;
  double expert_share_ = 0;  ///< of all layers
  double even_covered_ = 1;  ///< covered_part() where every stage has as many layers
  StageLoad embedding_;
  StageLoad tail_;  ///< the head, unless shards hold it, and the predictions
};

/// The maximum number of stages: the embedding and the head may each have a stage of their own.
inline std::int64_t max_stages(const Transformer& model) { return model.layers + 2; }

}  // namespace bubblescope::inline sim

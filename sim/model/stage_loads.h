// Assignment of a model's layers to the stages of one pipeline.
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
  double exchange = 0;  ///< the time that F, and again I, waits for the experts' all-to-all
};

/// The sum over a stage's layers.
struct StageLoad {
  std::int64_t layers = 0;
  PhaseTimes times;
  MemoryDelta memory{0, 0, 0};
  StageParameters parameters;
  double tables = 0;  ///< of `parameters`, those of the embedding and the head
  double exchange = 0;

  void add(const LayerKind& kind, std::int64_t count);
};

/// The layers that each stage holds, their total cost and memory. Refers to the ModelOnDevices.
class StageLoads {
 public:
  /// Layers are split so that the slowest stage is as fast as possible, or as
  /// Parallelism::layers_of_stage says. Throws Error if that does not have one entry per stage, or
  /// does not add up to the model's layers. With `shards`, no stage holds the head: so many shards
  /// divide it. Throws Error for models whose predictions have heads of their own.
  StageLoads(const ModelOnDevices& on, std::int32_t stages, std::int32_t shards = 0);

  /// [stage]: its first layer; and the end.
  const std::vector<std::int64_t>& first_layer() const { return first_layer_; }
  StageLoad load(std::int32_t stage) const;
  /// The load of a stage that would hold the layers from `first` to before `end`.
  StageLoad load(std::int32_t stage, std::int64_t first, std::int64_t end) const;
  /// The load of one shard, rounded up to whole words of the vocabulary.
  StageLoad load_shard() const;
  /// The mean time of those layers that follow the first dense ones, in nanoseconds.
  double layer_time() const;

 private:
  void add_embedding(StageLoad& sum) const;
  void add_head(const ModelOnDevices& on, StageLoad& sum) const;
  void add_predictions(StageLoad& sum) const;

  const ModelOnDevices& on_;
  std::int32_t stages_;
  std::int32_t shards_;
  std::vector<LayerKind> kinds_;
  std::vector<std::int64_t> first_layer_;
};

/// The maximum number of stages: the embedding and the head may each have a stage of their own.
inline std::int64_t max_stages(const Transformer& model) { return model.layers + 2; }

}  // namespace bubblescope::inline sim

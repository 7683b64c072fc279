// A model's layers, dealt to the stages of one pipeline.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/model/layer_cost.h"
#include "sim/model/memory_model.h"
#include "sim/model/stage_states.h"

namespace bubblescope {

/// Layers that are all alike.
struct LayerKind {
  std::int64_t end = 0;  ///< the first layer that is of another kind
  PhaseTimes times;
  MemoryDelta memory;
  StageParameters parameters;
  double exchange = 0;  ///< of F, and again of I: what is waited for the experts' all-to-all
};

/// What a stage takes and holds.
struct StageLoad {
  std::int64_t layers = 0;
  PhaseTimes times;
  MemoryDelta memory{0, 0, 0};
  StageParameters parameters;
  double exchange = 0;

  void add(const LayerKind& kind, std::int64_t count);
};

/// Which layers are on which stage, and what they make of it. Refers to the ModelOnDevices.
class StageLoads {
 public:
  /// Layers are split so that no stage has more work than need be, or as
  /// Parallelism::layers_of_stage says. Throws Error where that is not one entry per stage, or not
  /// the model's layers together.
  StageLoads(const ModelOnDevices& on, std::int32_t stages);

  /// [stage]: its first layer; and the end.
  const std::vector<std::int64_t>& first_layer() const { return first_layer_; }
  StageLoad load(std::int32_t stage) const;
  /// The same if it held the layers from `first` to before `end`.
  StageLoad load(std::int32_t stage, std::int64_t first, std::int64_t end) const;

 private:
  void add_embedding(StageLoad& sum) const;
  void add_head(StageLoad& sum) const;
  void add_predictions(StageLoad& sum) const;

  const ModelOnDevices& on_;
  std::int32_t stages_;
  std::vector<LayerKind> kinds_;
  std::vector<std::int64_t> first_layer_;
};

/// The most stages of a model: the embedding and the head may have a stage of their own each.
inline std::int64_t most_stages(const Transformer& model) { return model.layers + 2; }

}  // namespace bubblescope

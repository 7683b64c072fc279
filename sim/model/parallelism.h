// How a model is spread over devices, inside a stage and around the pipeline.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/ir/schedule.h"

namespace bubblescope {

struct Parallelism {
  std::int32_t tensor = 1;
  std::int32_t context = 1;
  std::int32_t expert = 1;  ///< ranks, out of the data ranks, that share the experts
  std::int32_t data = 1;
  std::int32_t micro_batch_size = 1;
  std::int64_t sequence = 2048;
  bool sequence_parallel = true;  ///< norms and residuals are split over the tensor ranks too
  bool flash_attention = true;    ///< scores are never stored
  Recompute recompute = Recompute::kNone;  ///< of a layer, arXiv 2205.05198; within its backward
  std::int32_t zero_stage =
      1;  ///< sharded over the data ranks: 1 optimizer, 2 gradients, 3 weights

  /// How many layers the tables count as when layers are split; what they cost unless given.
  std::optional<double> embedding_layers = {};
  std::optional<double> head_layers = {};
  /// Layers of every stage of a pipeline; empty: split so that no stage has more than need be.
  std::vector<std::int64_t> layers_of_stage = {};

  std::int64_t tokens() const { return micro_batch_size * sequence / context; }
  /// Over how many ranks the tensors around the norms are split.
  std::int32_t norm_split() const { return sequence_parallel ? tensor : 1; }
};

/// The layers that every stage holds, by index: stage s holds first_layer[s] .. first_layer[s+1]-1.
/// The embedding is on the first stage, the head on the last; each counts as much as the given
/// fraction of a layer, so that no stage has more work than need be.
struct TableLayers {
  double embedding_layers = 0;
  double head_layers = 0;
};
std::vector<std::int64_t> split_layers(std::int64_t layers, std::int32_t stages,
                                       const TableLayers& tables);

}  // namespace bubblescope

// Balanced layers: a split of a model's layers over the stages of a pipeline, where a rank may hold
// several stages.
//
// Where the stages go round the ranks, one after the other or interleaved, all ranks work on the
// same chunk at a time, and its slowest stage sets the pace: the balanced split has the smallest
// slowest stage. On a V, in a wave and in two directions ranks alternate between their stages, and
// the sum of a rank's stages sets the pace: the balanced split has the smallest slowest rank, and
// among those splits the smallest slowest stage.
//
//   5 layers on a V of four stages on two ranks; the last stage also has a head, which takes as
//   long as one and a half layers. Rank 0 holds stages 0 and 3, rank 1 stages 1 and 2.
//     2 1 2 0   the ranks take 3.5 and 3 layers' time, and the slowest stage 2
//     1 2 2 0   the slowest stage takes as long, but rank 1 takes 4
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "sim/ir/schedule.h"

namespace bubblescope::inline sim {

/// [stage]: the number of layers, for one pipeline.
using LayerCounts = std::vector<std::int64_t>;

/// Returns the first layer of each stage, and after them the end of the last one.
std::vector<std::int64_t> find_first_layers(const LayerCounts& counts);

/// Returns the inverse of find_first_layers().
LayerCounts count_layers(const std::vector<std::int64_t>& first_layers);

/// The ranks that hold each stage of one pipeline, without shards of the output layer.
struct StageHolders {
  /// A rank appears once for each copy of the stage that it holds, and so does a stage.
  std::vector<std::vector<std::int32_t>> ranks_of_stage;
  std::vector<std::vector<std::int32_t>> stages_of_rank;
  /// [stage]: the part of a micro-batch's time that its ranks spend, on average: replicas take
  /// turns.
  std::vector<double> share;
  bool stages_set_pace = true;  ///< else ranks do

  std::int32_t stages() const { return static_cast<std::int32_t>(ranks_of_stage.size()); }
};

StageHolders find_stage_holders(const Schedule& schedule);

/// The layers to balance, and what a stage takes with some of them.
struct BalanceProblem {
  std::int64_t layers = 0;
  /// The time of a stage with `layers` mean layers.
  std::function<double(std::int32_t stage, std::int64_t layers)> mean_time;
  /// The time of a stage with the layers from `first` to before `end`. Empty: layers are alike.
  std::function<double(std::int32_t stage, std::int64_t first, std::int64_t end)> time = {};
  /// Whether the ranks of a stage have memory for these layers. Empty: they always have.
  std::function<bool(std::int32_t stage, const LayerCounts& counts)> has_room = {};
};

/// The balanced split; nullopt if there is no room for all layers. Exact where every layer of a
/// stage takes the same time and ranks that share one stage share all of theirs, as in all
/// registered schedules; else near it, as where a stage's first layer costs more than others. Where
/// layers differ, the balanced split of mean layers is improved by moving single layers away from
/// the slowest rank and stage until no move helps. Ties go to the stages between the ends, because
/// those hold the tables too, and there to the last stage, because earlier ones hold the
/// activations of more micro-batches.
std::optional<LayerCounts> balance_layers(const StageHolders& holders,
                                          const BalanceProblem& problem);

/// Moves the surplus of a split to other stages. The stages with the most layers, except the last
/// one, give up one layer each. As many stages, counted from `from` and wrapping around before the
/// last one, then get one layer more. nullopt if too few stages can take one.
std::optional<LayerCounts> move_surplus(LayerCounts counts, std::int32_t from);

}  // namespace bubblescope::inline sim

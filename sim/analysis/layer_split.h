// Layer splits: ways to assign a model's layers to the stages of an order, and which are worth
// trying.
//
//   8 layers on 4 stages, the last one with a large head
//     balanced  2 2 3 1
//     even      2 2 2 2
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "sim/ir/named.h"
#include "sim/ir/valid_schedule.h"
#include "sim/model/place_stages.h"
#include "sim/model/rank_buffers.h"

namespace bubblescope::inline sim {

enum class LayerSplit : std::uint8_t {
  kBalanced,  ///< the slowest stage or rank is as fast as possible: sim/model/balance_layers.h
  kEven,      ///< the same number of layers on every stage: Megatron-LM's default
  /// Fewer layers on the first and the last stage, the same on all others: Llama 3's; or those that
  /// Parallelism::ends gives.
  kEnds,
  kFitted,  ///< balanced, but no rank holds more than fits in its memory
};

inline constexpr std::array<Named<LayerSplit>, 4> kLayerSplits{{
    {LayerSplit::kBalanced, "balanced"},
    {LayerSplit::kEven, "even"},
    {LayerSplit::kEnds, "ends"},
    {LayerSplit::kFitted, "fitted"},
}};

/// The figures by which splits are compared before anything is simulated.
struct SplitLoad {
  double slowest_stage = 0;  ///< nanoseconds per micro-batch
  double slowest_rank = 0;   ///< the same, summed over the rank's stages
  Bytes fullest_rank = 0;    ///< the memory of the rank that has the least left
  Bytes head_room = 0;       ///< what it has left; negative: what it lacks

  Bytes usable() const { return fullest_rank + head_room; }
  bool fits() const { return head_room >= 0; }

  /// Whether this split is at least as good in every figure.
  bool dominates(const SplitLoad& other) const {
    return slowest_stage <= other.slowest_stage && slowest_rank <= other.slowest_rank &&
           head_room >= other.head_room;
  }
};

/// Assigns one model's layers to the stages of one order, without the shards of its output layer.
/// Refers to both.
class LayerAssigner {
 public:
  LayerAssigner(const ModelOnDevices& on, const ValidSchedule& schedule);

  /// Empty if the layers cannot be split that way. With one stage per rank and identical layers,
  /// kFitted has the fastest slowest stage of all splits that fit.
  std::optional<LayerCounts> assign_layers(LayerSplit split) const;

  /// Memory peaks are computed from the order, as in memory_curve.h. For orders without copies.
  SplitLoad load(const LayerCounts& counts) const;

  /// Selects the splits to simulate: the first possible one, and each further one that fits in
  /// memory and is faster or smaller than all before it. [split]; empty for those not selected. For
  /// an order that copies activations to another memory, only the first.
  std::vector<std::optional<LayerCounts>> select_splits(std::span<const LayerSplit> splits) const;

 private:
  using LoadOfStage = std::function<StageLoad(std::int32_t stage)>;

  std::optional<LayerCounts> even() const;
  std::optional<LayerCounts> ends() const;
  std::optional<LayerCounts> fitted() const;
  StageLoad last_layers_load(std::int32_t stage, std::int64_t layers) const;
  bool fits_in_memory(std::int32_t stage, const LayerCounts& counts) const;
  Bytes held(std::int32_t rank, const LoadOfStage& load_of) const;

  const ModelOnDevices& on_;
  const Schedule& schedule_;
  RankBuffers buffers_;
  PlacedLoads loads_;
  std::optional<LayerCounts> balanced_;
  std::int32_t stages_;                 ///< of one pipeline, without shards
  std::vector<std::int32_t> versions_;  ///< [rank]: weight versions held
};

}  // namespace bubblescope::inline sim

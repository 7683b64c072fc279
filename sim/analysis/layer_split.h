// Ways to deal a model's layers to the stages of an order, and which of them are worth a try.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "sim/ir/named.h"
#include "sim/ir/valid_schedule.h"
#include "sim/model/layer_cost.h"
#include "sim/model/stage_loads.h"

namespace bubblescope {

enum class LayerSplit : std::uint8_t {
  kBalanced,  ///< no stage takes longer than need be
  kEven,      ///< as many layers on every stage: Megatron-LM's own
  kEnds,      ///< fewer on the first and the last stage, as many on all others: Llama 3's
  kFitted,    ///< balanced, but no more on a rank than fits in its memory
};

inline constexpr std::array<Named<LayerSplit>, 4> kLayerSplits{{
    {LayerSplit::kBalanced, "balanced"},
    {LayerSplit::kEven, "even"},
    {LayerSplit::kEnds, "ends"},
    {LayerSplit::kFitted, "fitted"},
}};

/// [stage]: layers of one pipeline.
using LayerCounts = std::vector<std::int64_t>;

/// By what splits are compared before anything is timed.
struct SplitLoad {
  double slowest_stage = 0;  ///< nanoseconds of one micro-batch
  double slowest_rank = 0;   ///< of all its stages
  Bytes fullest_rank = 0;

  /// Whether the other is no better in anything.
  bool covers(const SplitLoad& other) const {
    return slowest_stage <= other.slowest_stage && slowest_rank <= other.slowest_rank &&
           fullest_rank <= other.fullest_rank;
  }
};

/// Deals one model's layers to one order's stages. Refers to both.
class LayerDealer {
 public:
  LayerDealer(const ModelOnDevices& on, const ValidSchedule& schedule);

  /// Nothing where the layers cannot be dealt that way. With one stage per rank and layers that are
  /// all alike, kFitted is the best split that fits: none has a faster slowest stage.
  std::optional<LayerCounts> deal(LayerSplit split) const;

  /// What a rank holds at its peak is read off its order, as in memory_curve.h. For orders without
  /// copies.
  SplitLoad load(const LayerCounts& counts) const;

  /// Of the splits, the first that is possible, and each further one that fits in memory and of
  /// which none before it is as fast and as small; [split], nothing for the others. Where an order
  /// copies activations to another memory, the first alone.
  std::vector<std::optional<LayerCounts>> worth_trying(std::span<const LayerSplit> splits) const;

 private:
  LayerCounts balanced() const;
  std::optional<LayerCounts> even() const;
  std::optional<LayerCounts> ends() const;
  std::optional<LayerCounts> fitted() const;
  StageLoad alike(std::int32_t stage, std::int64_t layers) const;
  bool has_room(std::int32_t stage, const LayerCounts& counts) const;
  Bytes held(std::int32_t rank, const std::vector<StageLoad>& stages) const;

  const ModelOnDevices& on_;
  const Schedule& schedule_;
  std::int32_t stages_;
  StageLoads loads_;
  std::vector<std::vector<std::int32_t>> stages_of_rank_;  ///< of one pipeline, with repetitions
  std::vector<std::vector<std::int32_t>> ranks_of_stage_;
  std::vector<std::int32_t> versions_;  ///< [rank]: of its weights
};

}  // namespace bubblescope

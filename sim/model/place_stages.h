// The loads of a pipeline's stages, on the devices of their ranks.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/ir/schedule.h"
#include "sim/model/balance_layers.h"
#include "sim/model/stage_loads.h"

namespace bubblescope::inline sim {

/// The time and memory of each stage of a schedule with any layers. A stage that several ranks hold
/// takes as long as on the slowest. Refers to the ModelOnDevices.
class PlacedLoads {
 public:
  /// Throws Error if the devices are not one per rank, or as StageLoads does.
  PlacedLoads(const ModelOnDevices& on, const Schedule& schedule);
  PlacedLoads(const PlacedLoads&) = delete;
  PlacedLoads& operator=(const PlacedLoads&) = delete;

  const StageHolders& holders() const { return holders_; }
  StageLoad load(std::int32_t stage, std::int64_t first, std::int64_t end) const {
    return on_slowest(stage).load(stage, first, end);
  }
  /// The load of each shard of the output layer; nullopt if the last stage holds all of it.
  const std::optional<StageLoad>& shard() const { return shard_; }

  using HasRoom = std::function<bool(std::int32_t stage, const LayerCounts& counts)>;
  /// Returns the balanced split, as balance_layers() does.
  std::optional<LayerCounts> balance(const HasRoom& has_room = {}) const;
  /// Balances over stages where balance() does so over ranks, and the other way round.
  std::optional<LayerCounts> balance_otherwise() const;
  const PhaseTimes& mean_layer(std::int32_t stage) const { return on_slowest(stage).mean_layer(); }

 private:
  std::optional<LayerCounts> balance_over(const StageHolders& holders,
                                          const HasRoom& has_room) const;
  std::size_t find_slowest(std::int32_t stage,
                           const std::vector<std::size_t>& device_of_rank) const;
  const StageLoads& on_slowest(std::int32_t stage) const {
    return loads_[slowest_device_[static_cast<std::size_t>(stage)]];
  }

  const ModelOnDevices& on_;
  StageHolders holders_;
  std::vector<ModelOnDevices> devices_;      ///< of several kinds, each once
  std::vector<StageLoads> loads_;            ///< [device]
  std::vector<std::size_t> slowest_device_;  ///< [stage]: of the ranks that hold it
  std::optional<StageLoad> shard_;
};

struct PlacedStages {
  std::vector<std::int64_t> first_layer;  ///< [stage] of one pipeline, and the end
  std::vector<StageLoad> loads;           ///< [stage] of one pipeline
};

/// Layers are balanced, or as Parallelism::layers_of_stage or ends says. Throws Error if the former
/// does not have one entry per stage, or does not add up to the model's layers, where the latter
/// does not divide them, and as PlacedLoads does.
PlacedStages place_stages(const ModelOnDevices& on, const Schedule& schedule);

/// The devices of a pipeline of `ranks` ranks, in the order and the proportions of the list. Throws
/// Error where these ranks cannot be divided like that.
std::vector<Gpu> spread_devices(const std::vector<Gpu>& list, std::int32_t ranks);

/// The same model where every rank has the device of this one.
ModelOnDevices on_device_of(const ModelOnDevices& on, std::int32_t rank);

}  // namespace bubblescope::inline sim

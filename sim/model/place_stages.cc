// Finds the device that decides for each stage, and the layers of each.
#include "sim/model/place_stages.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <string>

#include "sim/ir/counted.h"
#include "sim/ir/error.h"
#include "sim/model/megatron_counts.h"

namespace bubblescope::inline sim {

namespace {

void expect_one_device_per_rank(const ModelOnDevices& on, const Shape& shape) {
  const auto ranks = static_cast<std::size_t>(shape.ranks);
  if (on.rank_gpus.size() == ranks) return;
  const std::string half = std::to_string(std::max<std::size_t>(1, ranks / 2));
  throw Error(Fault::kProblem, "`gpu` names " + counted(on.rank_gpus.size(), "device") +
                                   " for the " + counted(ranks, "rank") +
                                   " of a pipeline; give one for each, such as " + half + "xh100," +
                                   half + "xa100");
}

void expect_one_kind_of_devices(const Schedule& schedule) {
  if (schedule.side_stages > 0)
    throw Error(Fault::kProblem, "`gpu` names devices of several kinds, and " + schedule.name +
                                     " gives all ranks an equal part of the output layer; name one "
                                     "kind, or give `costs`");
}

const LayerCounts& expect_all_layers(const ModelOnDevices& on, std::int32_t stages) {
  const LayerCounts& given = on.parallel.layers_of_stage;
  const std::int64_t sum = std::accumulate(given.begin(), given.end(), std::int64_t{0});
  if (given.size() != static_cast<std::size_t>(stages) || sum != on.model.layers)
    throw Error(Fault::kProblem, "`layout` has " + counted(sum, "layer") + " t on " +
                                     counted(given.size(), "stage") + "; write the model's " +
                                     std::to_string(on.model.layers) + " on " +
                                     std::to_string(stages));
  return given;
}

/// The devices of several kinds, each once.
struct UsedDevices {
  std::vector<ModelOnDevices> devices;
  std::vector<std::size_t> of_rank;  ///< indices into `devices`
};

UsedDevices collect_devices(const ModelOnDevices& on) {
  UsedDevices used;
  for (std::size_t rank = 0; rank < on.rank_gpus.size(); ++rank) {
    const auto known =
        std::find_if(used.devices.begin(), used.devices.end(),
                     [&](const auto& each) { return each.gpu == on.rank_gpus[rank]; });
    used.of_rank.push_back(static_cast<std::size_t>(known - used.devices.begin()));
    if (known == used.devices.end())
      used.devices.push_back(on_device_of(on, static_cast<std::int32_t>(rank)));
  }
  return used;
}

}  // namespace

std::vector<Gpu> spread_devices(const std::vector<Gpu>& list, std::int32_t ranks) {
  std::vector<Gpu> spread;
  const auto listed = static_cast<std::int64_t>(list.size());
  std::int64_t unit = listed;  // the most listed ranks that divide those of every kind
  for (auto begin = list.begin(); begin != list.end();) {
    const auto end =
        std::find_if(begin, list.end(), [&](const Gpu& gpu) { return !(gpu == *begin); });
    unit = std::gcd(unit, end - begin);
    spread.insert(spread.end(), static_cast<std::size_t>((end - begin) * ranks / listed), *begin);
    begin = end;
  }
  if (listed > 0 && ranks % (listed / unit) != 0)
    throw Error(Fault::kProblem,
                fmt::format("`gpu` names devices of several kinds for {}, and `pp` {} cannot be "
                            "divided in their proportions; give multiples of {}",
                            counted(listed, "rank"), ranks, listed / unit));
  return spread;
}

ModelOnDevices on_device_of(const ModelOnDevices& on, std::int32_t rank) {
  ModelOnDevices here = on;
  here.gpu = on.gpu_of(rank);
  here.rank_gpus.clear();
  return here;
}

PlacedLoads::PlacedLoads(const ModelOnDevices& on, const Schedule& schedule)
    : on_(on), holders_(find_stage_holders(schedule)) {
  const std::int32_t stages = holders_.stages();
  slowest_device_.assign(static_cast<std::size_t>(stages), 0);
  if (on.rank_gpus.empty()) {
    loads_.emplace_back(on, stages, schedule.side_stages);
    if (schedule.side_stages > 0) shard_ = loads_.front().load_shard();
    return;
  }
  expect_one_kind_of_devices(schedule);
  expect_one_device_per_rank(on, schedule.shape);
  UsedDevices used = collect_devices(on);
  devices_ = std::move(used.devices);
  // The loads refer to devices_, which stays as it is from now on.
  for (const ModelOnDevices& device : devices_) loads_.emplace_back(device, stages);
  for (std::int32_t stage = 0; stage < stages; ++stage)
    slowest_device_[static_cast<std::size_t>(stage)] = find_slowest(stage, used.of_rank);
}

std::size_t PlacedLoads::find_slowest(std::int32_t stage,
                                      const std::vector<std::size_t>& device_of_rank) const {
  const std::vector<std::int32_t>& ranks = holders_.ranks_of_stage[static_cast<std::size_t>(stage)];
  const auto device_of = [&](std::int32_t rank) {
    return device_of_rank[static_cast<std::size_t>(rank)];
  };
  return device_of(
      *std::max_element(ranks.begin(), ranks.end(), [&](std::int32_t left, std::int32_t right) {
        return loads_[device_of(left)].layer_time() < loads_[device_of(right)].layer_time();
      }));
}

std::optional<LayerCounts> PlacedLoads::balance(const HasRoom& has_room) const {
  return balance_over(holders_, has_room);
}

std::optional<LayerCounts> PlacedLoads::balance_otherwise() const {
  StageHolders other = holders_;
  other.stages_set_pace = !other.stages_set_pace;
  return balance_over(other, {});
}

std::optional<LayerCounts> PlacedLoads::balance_over(const StageHolders& holders,
                                                     const HasRoom& has_room) const {
  BalanceProblem problem;
  problem.layers = on_.model.layers;
  problem.mean_time = [this](std::int32_t stage, std::int64_t layers) {
    return on_slowest(stage).mean_split_time(stage, layers);
  };
  if (!loads_.front().has_layers_alike())
    problem.time = [this](std::int32_t stage, std::int64_t first, std::int64_t end) {
      return on_slowest(stage).split_time(stage, first, end);
    };
  problem.has_room = has_room;
  return balance_layers(holders, problem);
}

PlacedStages place_stages(const ModelOnDevices& on, const Schedule& schedule) {
  const PlacedLoads loads(on, schedule);
  const std::int32_t stages = loads.holders().stages();
  PlacedStages placed;
  if (!on.parallel.layers_of_stage.empty())
    placed.first_layer = find_first_layers(expect_all_layers(on, stages));
  else if (on.parallel.ends.any())
    placed.first_layer =
        find_first_layers(place_megatron_counts(on.model.layers, schedule, on.parallel.ends));
  else
    placed.first_layer = find_first_layers(*loads.balance());
  for (std::int32_t stage = 0; stage < stages; ++stage) {
    const auto at = static_cast<std::size_t>(stage);
    placed.loads.push_back(loads.load(stage, placed.first_layer[at], placed.first_layer[at + 1]));
  }
  if (loads.shard())
    placed.loads.resize(placed.loads.size() + static_cast<std::size_t>(schedule.side_stages),
                        *loads.shard());
  return placed;
}

}  // namespace bubblescope::inline sim

// Splits layers by the speed of devices.
#include "sim/model/place_stages.h"

#include <algorithm>
#include <string>

#include "sim/ir/error.h"

namespace bubblescope::inline sim {

namespace {

double total(const PhaseTimes& times) {
  return times.forward + times.input_grad + times.weight_grad;
}

void expect_one_device_per_rank(const ModelOnDevices& on, const Shape& shape) {
  const auto ranks = static_cast<std::size_t>(shape.ranks);
  if (on.rank_gpus.size() == ranks) return;
  const std::string half = std::to_string(std::max<std::size_t>(1, ranks / 2));
  throw Error(Fault::kProblem, "`gpu` names " + std::to_string(on.rank_gpus.size()) +
                                   " devices for the " + std::to_string(ranks) +
                                   " ranks of a pipeline; give one for each, such as " + half +
                                   "xh100," + half + "xa100");
}

/// Two StageLoads of the same stage: the one that takes longer.
const StageLoads& slower(const StageLoads& left, const StageLoads& right) {
  return left.layer_time() < right.layer_time() ? right : left;
}

/// Every kind of device once, with the loads of stages on it.
class DeviceLoads {
 public:
  DeviceLoads(const ModelOnDevices& on, std::int32_t stages) {
    for (std::size_t rank = 0; rank < on.rank_gpus.size(); ++rank) {
      const auto known = std::find_if(devices_.begin(), devices_.end(), [&](const auto& each) {
        return each.gpu == on.rank_gpus[rank];
      });
      device_of_rank_.push_back(static_cast<std::size_t>(known - devices_.begin()));
      if (known == devices_.end())
        devices_.push_back(on_device_of(on, static_cast<std::int32_t>(rank)));
    }
    // The loads refer to devices_, which stays as it is from now on.
    for (const ModelOnDevices& device : devices_) loads_.emplace_back(device, stages);
  }

  /// On the slowest of the ranks that hold the stage, in any pipeline or replica.
  const StageLoads& find_slowest(const Schedule& schedule, std::int32_t stage) const {
    const StageLoads* slowest = nullptr;
    for (std::int32_t copy = stage; copy < schedule.stages();
         copy += schedule.stages_per_pipeline())
      for (std::int32_t replica = 0; replica < schedule.replicas(copy); ++replica) {
        const auto rank = static_cast<std::size_t>(
            schedule.rank_of_stage[static_cast<std::size_t>(copy)] + replica);
        const StageLoads& here = loads_[device_of_rank_[rank]];
        slowest = slowest == nullptr ? &here : &slower(*slowest, here);
      }
    return *slowest;
  }

 private:
  std::vector<ModelOnDevices> devices_;
  std::vector<std::size_t> device_of_rank_;
  std::vector<StageLoads> loads_;
};

/// The time of a stage without layers, or of as many of them as the table counts for.
double table_time(const StageLoads& loads, std::int32_t stage, std::optional<double> layers) {
  return layers ? *layers * loads.layer_time() : total(loads.load(stage, 0, 0).times);
}

std::vector<std::int64_t> split_by_time(const ModelOnDevices& on,
                                        const std::vector<const StageLoads*>& loads) {
  std::vector<double> ends;
  const auto stages = static_cast<std::int32_t>(loads.size());
  for (std::int32_t stage = 0; stage < stages; ++stage) {
    const StageLoads& here = *loads[static_cast<std::size_t>(stage)];
    double table = 0;
    if (stage == 0) table += table_time(here, stage, on.parallel.embedding_layers);
    if (stage == stages - 1 && (stages > 1 || on.parallel.head_layers))
      table += table_time(here, stage, on.parallel.head_layers);
    ends.push_back(table + here.layer_time());
  }
  std::vector<std::int64_t> layers(loads.size(), 0);
  for (std::int64_t layer = 0; layer < on.model.layers; ++layer) {
    const auto next =
        static_cast<std::size_t>(std::min_element(ends.begin(), ends.end()) - ends.begin());
    ++layers[next];
    ends[next] += loads[next]->layer_time();
  }
  std::vector<std::int64_t> first_layer{0};
  for (const std::int64_t count : layers) first_layer.push_back(first_layer.back() + count);
  return first_layer;
}

}  // namespace

ModelOnDevices on_device_of(const ModelOnDevices& on, std::int32_t rank) {
  ModelOnDevices here = on;
  here.gpu = on.gpu_of(rank);
  here.rank_gpus.clear();
  return here;
}

PlacedStages place_stages(const ModelOnDevices& on, const Schedule& schedule) {
  const std::int32_t shards = schedule.side_stages;
  const std::int32_t count = schedule.stages_per_pipeline() - shards;
  PlacedStages placed;
  if (on.rank_gpus.empty()) {
    const StageLoads split(on, count, shards);
    placed.first_layer = split.first_layer();
    for (std::int32_t stage = 0; stage < count; ++stage) placed.loads.push_back(split.load(stage));
    placed.loads.resize(placed.loads.size() + static_cast<std::size_t>(shards),
                        shards > 0 ? split.load_shard() : StageLoad{});
    return placed;
  }
  if (shards > 0)
    throw Error(Fault::kProblem, "`gpu` names devices of several kinds, and " + schedule.name +
                                     " gives all ranks an equal part of the output layer; name one "
                                     "kind, or give `costs`");
  expect_one_device_per_rank(on, schedule.shape);
  const DeviceLoads devices(on, count);
  std::vector<const StageLoads*> loads;
  for (std::int32_t stage = 0; stage < count; ++stage)
    loads.push_back(&devices.find_slowest(schedule, stage));
  placed.first_layer =
      on.parallel.layers_of_stage.empty() ? split_by_time(on, loads) : loads[0]->first_layer();
  for (std::int32_t stage = 0; stage < count; ++stage) {
    const auto at = static_cast<std::size_t>(stage);
    placed.loads.push_back(
        loads[at]->load(stage, placed.first_layer[at], placed.first_layer[at + 1]));
  }
  return placed;
}

}  // namespace bubblescope::inline sim

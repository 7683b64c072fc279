// The loads of a pipeline's stages, on the devices of their ranks.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/ir/schedule.h"
#include "sim/model/stage_loads.h"

namespace bubblescope::inline sim {

struct PlacedStages {
  std::vector<std::int64_t> first_layer;  ///< [stage] of one pipeline, and the end
  std::vector<StageLoad> loads;           ///< [stage] of one pipeline
};

/// Where ranks have different devices, slower ones get fewer layers: layers go one by one to the
/// stage that then takes the least time, unless Parallelism::layers_of_stage says otherwise. A
/// stage that several ranks hold takes as long as on the slowest. Throws Error if the devices are
/// not one per rank, or as StageLoads does.
PlacedStages place_stages(const ModelOnDevices& on, const Schedule& schedule);

/// The same model where every rank has the device of this one.
ModelOnDevices on_device_of(const ModelOnDevices& on, std::int32_t rank);

}  // namespace bubblescope::inline sim

// Converts the memory of devices to the caps of a search.
#include "tools/inputs/device_caps.h"

#include <utility>

#include "sim/predict/memory_caps.h"
#include "sim/predict/models.h"

namespace bubblescope::tools {

ScheduleRequest cap_to_devices(ScheduleRequest request, const ScheduleDef& def, MemoryModel memory,
                               Bytes usable) {
  if (!def.reads_costs || !def.refuse) return request;
  const auto ranks = static_cast<std::size_t>(request.shape.ranks);
  ScheduleRequest capped = request;
  capped.memory.cap.assign(ranks, 0);
  if (def.refuse(capped).empty()) return request;  // its caps are part of its name
  memory.cap_bytes.assign(ranks, usable);
  capped.memory.cap = convert_caps_to_units(memory, request.shape);
  return def.refuse(capped).empty() ? capped : request;
}

ScheduleRequest cap_to_devices(ScheduleRequest request, const ScheduleDef& def, Config config) {
  auto* const model = std::get_if<ModelCosts>(&config.costs);
  if (model == nullptr) return request;
  const auto cap = [&] {
    return cap_to_devices(request, def, find_memory_before_order(request.shape, config),
                          model->on.usable_memory());
  };
  ScheduleRequest capped = cap();
  if (!capped.memory.cap.empty() || !model->may_shrink_gradients) return capped;
  model->on.parallel.gradients = Gradients::kLean;
  return cap();
}

}  // namespace bubblescope::tools

// Gives schedules that search for an order the memory of their stages and caps in bytes.
#include "tools/inputs/device_caps.h"

#include <utility>

#include "sim/ir/placement.h"
#include "sim/model/model_step.h"
#include "sim/model/schedule_refusal.h"
#include "sim/predict/models.h"

namespace bubblescope::tools {

Schedule place_searched_stages(const ScheduleDef& def, const Shape& shape) {
  Schedule unordered = make_unordered_schedule(shape, def.splits_output_layer ? shape.ranks : 0);
  if (!def.splits_output_layer)
    unordered.rank_of_stage = zigzag_placement(shape.ranks, shape.chunks);
  return unordered;
}

ScheduleRequest cap_to_devices(ScheduleRequest request, const ScheduleDef& def, MemoryModel memory,
                               std::vector<Bytes> usable) {
  if (!searches_under_caps(def, request)) return request;
  ScheduleRequest capped = request;
  capped.memory = std::move(memory);
  capped.memory.cap_bytes = std::move(usable);
  return def.refuse(capped).empty() ? capped : request;
}

namespace {

ScheduleRequest cap_to_model(ScheduleRequest request, const ScheduleDef& def, Config config) {
  auto* const model = std::get_if<ModelCosts>(&config.costs);
  if (model == nullptr) return request;
  const Schedule unordered = place_searched_stages(def, request.shape);
  const auto cap = [&] {
    return cap_to_devices(request, def, find_memory_before_order(unordered, config),
                          model->on.usable_memories(request.shape.ranks));
  };
  ScheduleRequest capped = cap();
  if (!capped.memory.cap_bytes.empty() || !model->may_shrink_gradients) return capped;
  model->on.parallel.gradients = Gradients::kLean;
  return cap();
}

}  // namespace

ScheduleRequest limit_bytes(ScheduleRequest request, const ScheduleDef& def, const Config& config) {
  if (!request.memory.cap.empty()) return request;
  if (request.memory.cap_bytes.empty()) return cap_to_model(std::move(request), def, config);
  request.memory = find_memory_before_order(place_searched_stages(def, request.shape), config);
  return request;
}

}  // namespace bubblescope::tools

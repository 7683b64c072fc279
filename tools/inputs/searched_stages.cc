// Prices stages before there is an order.
#include "tools/inputs/searched_stages.h"

#include <algorithm>
#include <utility>

#include "sim/ir/placement.h"
#include "sim/model/model_step.h"
#include "sim/model/schedule_refusal.h"
#include "sim/predict/models.h"

namespace bubblescope::tools {

namespace {

/// Returns the request with the bytes of its stages, which devices cap where nothing else does.
ScheduleRequest limit_bytes(ScheduleRequest request, const Schedule& unordered,
                            const Config& config) {
  const auto* const model = std::get_if<ModelCosts>(&config.costs);
  request.memory = find_memory_before_order(unordered, config);
  if (request.memory.cap_bytes.empty() && model != nullptr)
    request.memory.cap_bytes = model->on.usable_memories(request.shape.ranks);
  return request;
}

/// Whether bytes limit the order: those of the user's caps, or of a model's devices.
bool has_byte_limits(const ScheduleRequest& request, const ScheduleDef& def, const Config& config) {
  if (!request.memory.cap.empty()) return false;
  if (!request.memory.cap_bytes.empty()) return true;
  return std::holds_alternative<ModelCosts>(config.costs) && searches_under_caps(def, request);
}

}  // namespace

Schedule place_in_loop(const ScheduleDef& def, const Shape& shape) {
  Schedule unordered = make_unordered_schedule(shape, def.splits_output_layer ? shape.ranks : 0);
  unordered.name = def.name;
  return unordered;
}

namespace {

/// Returns a schedule without an order, with the stages where a schedule that searches places them.
Schedule place_searched_stages(const ScheduleDef& def, const Shape& shape) {
  Schedule unordered = place_in_loop(def, shape);
  const std::vector<std::int32_t> zigzag = zigzag_placement(shape.ranks, shape.chunks);
  std::copy(zigzag.begin(), zigzag.end(), unordered.rank_of_stage.begin());
  return unordered;
}

}  // namespace

ScheduleRequest price_stages(ScheduleRequest request, const ScheduleDef& def, Config config) {
  const Schedule unordered = place_searched_stages(def, request.shape);
  request.stage_costs = find_costs_before_order(unordered, config);
  if (!has_byte_limits(request, def, config)) return request;
  auto* const model = std::get_if<ModelCosts>(&config.costs);
  const bool may_shrink = model != nullptr && model->may_shrink_gradients;
  for (const Gradients gradients : kTriedGradients) {
    if (may_shrink) model->on.parallel.shrink_gradients(gradients);
    ScheduleRequest limited = limit_bytes(request, unordered, config);
    if (may_shrink) limited.stage_costs = find_costs_before_order(unordered, config);
    if (refuse_schedule(def, limited).empty()) return limited;
    if (!may_shrink) break;
  }
  // Caps of the user's own are refused with their reason; a device's are reported as not fitting.
  return request.memory.cap_bytes.empty() ? request : limit_bytes(request, unordered, config);
}

}  // namespace bubblescope::tools

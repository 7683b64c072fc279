// Computed layer by layer: the time of R is what recomputation adds to the backward.
#include "sim/model/stage_recompute.h"

#include <cmath>

#include "sim/ir/range.h"
#include "sim/model/activation_bytes.h"
#include "sim/model/layer_cost.h"

namespace bubblescope::inline sim {

StageRecompute estimate_stage_recompute(const ModelOnDevices& on, const ModelStep& step,
                                        const Schedule& schedule, std::int32_t stage) {
  ModelOnDevices keeping = on;
  keeping.parallel.recompute = Recompute::kNone;
  ModelOnDevices recomputing = on;
  recomputing.parallel.recompute = schedule.recompute(stage);
  const auto at = static_cast<std::size_t>(stage % schedule.stages_per_pipeline());
  double time = 0;
  Bytes freed_bytes = 0;
  for (std::int64_t layer = step.first_layer[at]; layer < step.first_layer[at + 1]; ++layer) {
    time += estimate_layer_times(recomputing, layer).input_grad -
            estimate_layer_times(keeping, layer).input_grad;
    freed_bytes += estimate_layer_memory(on.model, keeping.parallel, layer).forward -
                   estimate_layer_memory(on.model, recomputing.parallel, layer).forward;
  }
  const std::int32_t slices = schedule.shape.slices;
  return {round_nanos(time / slices, "the recomputation of a stage"), freed_bytes / slices};
}

}  // namespace bubblescope::inline sim

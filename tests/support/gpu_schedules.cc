// Leaves out schedules that refuse a shape, and those whose stages are a graph.
#include "tests/support/gpu_schedules.h"

#include "sim/ir/error.h"
#include "sim/model/schedule_def.h"

namespace bubblescope::tests {

GpuSchedules build_gpu_schedules(const Shape& shape) {
  GpuSchedules schedules;
  for (const ScheduleDef& def : Registry<ScheduleDef>::instance().all()) {
    try {
      const Schedule schedule = build_schedule(def, {shape, {}, {}});
      if (schedule.graph.is_chain())
        schedules.trained.push_back(schedule);
      else
        schedules.left_out[def.name] = "its stages are a graph";
    } catch (const Error& error) {
      schedules.left_out[def.name] = error.what();
    }
  }
  return schedules;
}

}  // namespace bubblescope::tests

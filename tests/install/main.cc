// Lists the registered schedules and predicts a step of one, with installed headers alone. It fails
// if the linker dropped the objects that register schedules, or if the prediction is wrong.
#include <cstdio>

#include "sim/model/schedule_def.h"
#include "sim/predict/predict.h"

namespace {

/// The step time of 1F1B with 4 ranks and 8 micro-batches, in units of one forward and backward.
bubblescope::Nanos predict_step() {
  bubblescope::ScheduleRequest request;
  request.shape.ranks = 4;
  request.shape.microbatches = 8;
  bubblescope::UniformCosts costs;
  costs.cost.forward = 2;
  costs.cost.backward = 4;
  bubblescope::Config config;
  config.costs = costs;
  const bubblescope::Prediction step = bubblescope::predict(
      bubblescope::build_schedule(bubblescope::find_schedule("1f1b"), request), config);
  return step.report.makespan / 6;
}

}  // namespace

int main() {
  const auto& schedules = bubblescope::Registry<bubblescope::ScheduleDef>::instance().all();
  for (const auto& schedule : schedules) std::printf("%s ", schedule.name.c_str());
  const bubblescope::Nanos step = predict_step();
  std::printf("\n1f1b takes %lld times as long as one micro-batch\n", static_cast<long long>(step));
  return schedules.empty() || step != 8 + 4 - 1 ? 1 : 0;  // m + p - 1
}

// Simulates the measured schedules with their costs.
#include "tools/commands/calibrate_means.h"

#include <cmath>
#include <utility>

#include "tools/inputs/predict.h"

namespace bubblescope::tools {

namespace {

/// [stage][kind]: the durations of the ops of all schedules.
using DurationsByKind = std::vector<std::array<std::vector<Nanos>, kComputeKinds>>;

void add_ops(DurationsByKind& durations, const TimedStep& step) {
  for (InstructionId id = 0; id < step.program.size(); ++id) {
    const auto& [op, lane, rank, peer, role] = step.program.instructions[id];
    if (lane != kNoLane && is_compute(op.kind))
      durations[static_cast<std::size_t>(op.stage)][static_cast<std::size_t>(op.kind)].push_back(
          step.timeline.end[id] - step.timeline.start[id]);
  }
}

}  // namespace

std::vector<std::array<double, kComputeKinds>> find_shortfalls(const CostTable& table,
                                                               const MeasuredMeans& measured) {
  PredictOptions flags = measured.inputs.flags();
  flags.cost.file = "measured costs";
  const PredictInputs inputs(std::move(flags), {.costs = table});
  DurationsByKind durations(table.stages.size());
  for (const Measurement& each : measured.schedules)
    add_ops(durations, predict_timed_step(each.step.schedule, inputs));
  std::vector<std::array<double, kComputeKinds>> factors(durations.size());
  for (std::size_t stage = 0; stage < durations.size(); ++stage)
    for (std::size_t kind = 0; kind < kComputeKinds; ++kind) {
      // Both are estimated alike, without the longest and the shortest tenth.
      const auto predicted = exec::estimate(std::move(durations[stage][kind]));
      const auto& known = measured.calibration.ops[stage][kind];
      factors[stage][kind] =
          known && predicted && known->mean > 0 && predicted->mean > 0
              ? static_cast<double>(known->mean) / static_cast<double>(predicted->mean)
              : 1;
    }
  return factors;
}

void scale_times(exec::ContendedTimes& times,
                 const std::vector<std::array<double, kComputeKinds>>& factors) {
  for (std::size_t stage = 0; stage < times.size(); ++stage)
    for (std::size_t kind = 0; kind < kComputeKinds; ++kind)
      for (Nanos& time : times[stage][kind])
        time = std::llround(static_cast<double>(time) * factors[stage][kind]);
}

}  // namespace bubblescope::tools

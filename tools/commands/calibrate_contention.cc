// Measures costs as a function of the number of busy ranks.
#include "tools/commands/calibrate_contention.h"

#include <algorithm>
#include <utility>

#include "exec/calibration/contention_costs.h"
#include "exec/calibration/contention_program.h"
#include "exec/calibration/kind_contention.h"
#include "tools/commands/calibrate_means.h"
#include "tools/commands/calibrate_messages.h"
#include "tools/commands/step_clocks.h"

namespace bubblescope::tools {

namespace {

constexpr std::int64_t kMinSamples =
    8;  // samples of real steps that take precedence over single ops

using MeasuredTimes = std::vector<std::optional<exec::Estimate>>;

struct MeasuredKind {
  OpKind kind = OpKind::kForward;
  Recompute recompute = Recompute::kNone;
  std::vector<Nanos> times;  ///< by the number of busy ranks; not empty
};

void add_kind(StageEntry& stage, const MeasuredKind& seen) {
  set_duration(stage, seen.kind, seen.recompute, seen.times[0]);
  if (seen.times.size() == 1) return;
  if (!stage.contended) stage.contended.emplace();
  (*stage.contended)[static_cast<std::size_t>(seen.kind)].assign(seen.times.begin() + 1,
                                                                 seen.times.end());
}

/// A cost table contains the sum over slices.
void put_times(CostTable& table, const exec::ContendedTimes& measured, const Schedule& schedule) {
  for (std::size_t stage = 0; stage < measured.size(); ++stage)
    for (std::size_t kind = 0; kind < kCostKeys.size(); ++kind) {
      std::vector<Nanos> times = measured[stage][kind];
      if (times.empty()) continue;
      for (Nanos& time : times) time *= schedule.shape.slices;
      add_kind(table.stages[stage],
               {static_cast<OpKind>(kind), schedule.recompute(static_cast<std::int32_t>(stage)),
                std::move(times)});
    }
}

/// How often costs are corrected by what they predict: the errors shrink about tenfold each time.
constexpr int kCorrections = 3;

void reproduce_means(CostTable& table, exec::ContendedTimes times, const MeasuredMeans& measured) {
  for (int correction = 0; correction < kCorrections; ++correction) {
    scale_times(times, find_shortfalls(table, measured));
    put_times(table, times, *measured.schedules[0].step.schedule);
  }
}

}  // namespace

std::vector<std::optional<exec::Estimate>> choose_estimates(
    const std::vector<std::optional<exec::Estimate>>& in_schedules,
    const std::vector<std::optional<exec::Estimate>>& in_turns) {
  MeasuredTimes chosen = in_turns;
  for (std::size_t at = 0; at < chosen.size(); ++at)
    if (in_schedules[at] && (!chosen[at] || in_schedules[at]->samples >= kMinSamples))
      chosen[at] = in_schedules[at];
  return chosen;
}

std::vector<exec::Observation> collect_observations(const std::vector<Measurement>& schedules) {
  std::vector<exec::Observation> observations;
  for (const Measurement& measurement : schedules)
    observations.push_back({measurement.step.program, measurement.steps});
  return observations;
}

void set_duration(StageEntry& entry, OpKind kind, Recompute recompute, Nanos time) {
  if (kind == OpKind::kForward) entry.forward = time;
  if (kind == OpKind::kBackward) entry.backward = time;
  if (kind == OpKind::kInputGrad) entry.input_grad = time;
  if (kind == OpKind::kWeightGrad) entry.weight_grad = time;
  if (kind != OpKind::kRecompute) return;
  if (recompute == Recompute::kSelective)
    entry.selective_recompute = time;
  else
    entry.recompute = time;
}

CalibratedCosts with_contention(CalibratedCosts costs, const std::vector<Measurement>& schedules,
                                const RunContext& context) {
  const ValidSchedule& schedule = schedules[0].step.schedule;
  const exec::ContentionRequest request{schedule->stages(), schedules[0].ranks_per_device};
  const Program program = exec::contention_program(schedule, request.ranks_per_device);
  TimedSteps timed = time_program(schedule, program, context);
  if (costs.table.sm_mhz) scale_to_clock(timed.steps, timed.devices, *costs.table.sm_mhz);
  const exec::Observation observation{program, timed.steps};
  const exec::ContentionCosts apart = exec::find_contention_costs({&observation, 1}, request);
  const std::vector<exec::Observation> real_steps = collect_observations(schedules);
  const exec::ContentionCosts together = exec::find_contention_costs(real_steps, request);
  const exec::Calibration calibration = exec::calibrate(real_steps, request.stages);
  costs.measured.samples.resize(apart.size());
  exec::ContendedTimes measured(apart.size());
  for (std::size_t stage = 0; stage < apart.size(); ++stage)
    for (std::size_t kind = 0; kind < kCostKeys.size(); ++kind) {
      const MeasuredTimes seen = choose_estimates(together[stage][kind], apart[stage][kind]);
      measured[stage][kind] = exec::fill_contention(seen);
      if (!measured[stage][kind].empty()) costs.measured.samples[stage][kind] = count_samples(seen);
    }
  put_times(costs.table, measured, *schedule);
  costs.table.ranks_per_device = request.ranks_per_device;
  std::vector<exec::Observation> all = real_steps;
  all.push_back(observation);
  costs.table.kind_weights = exec::fit_kind_weights(all, measured, request.ranks_per_device);
  if (calibration.message) {
    const Nanos effective = std::max<Nanos>(0, calibration.message->mean);
    costs = with_messages(std::move(costs),
                          {real_steps, {observation}, request.ranks_per_device, effective},
                          schedule, context.run);
  }
  reproduce_means(costs.table, std::move(measured), {schedules, calibration, context.inputs});
  return costs;
}

}  // namespace bubblescope::tools

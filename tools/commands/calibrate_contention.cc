// Measures costs as a function of the number of busy ranks.
#include "tools/commands/calibrate_contention.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "exec/calibration/contention_costs.h"
#include "exec/calibration/contention_program.h"
#include "tools/commands/calibrate_messages.h"
#include "traces/costs/contention_entry.h"
#include "traces/costs/cost_file.h"

namespace bubblescope::tools {

namespace {

using Json = nlohmann::ordered_json;

constexpr std::int64_t kMinSamples =
    8;  // samples of real steps that take precedence over single ops

using MeasuredTimes = std::vector<std::optional<exec::Estimate>>;

/// The key of R depends on what was recomputed.
const char* find_contended_key(const Schedule& schedule, std::size_t stage, std::size_t kind) {
  const bool selective =
      schedule.recompute(static_cast<std::int32_t>(stage)) == Recompute::kSelective;
  const bool again = kind == static_cast<std::size_t>(OpKind::kRecompute);
  return again && selective ? "selective_recompute" : kCostKeys[kind];
}

struct MeasuredKind {
  std::size_t kind = 0;
  const char* key = nullptr;  ///< the key of the cost without contention
  MeasuredTimes by_busy;
  std::int64_t slices = 1;  ///< cost files contain the sum over slices
};

/// Each op's time includes the launch of the next op, so a message's time does not.
Json write_kind(Json stage, const MeasuredKind& seen, Nanos between_ops) {
  const std::vector<Nanos> times = exec::fill_contention(seen.by_busy);
  if (times.empty()) return stage;
  const auto whole = [&](Nanos time) {
    return traces::write_cost_duration((time + between_ops) * seen.slices);
  };
  stage[seen.key] = whole(times[0]);
  for (std::size_t at = 1; at < times.size(); ++at)
    stage["contended"][kCostKeys[seen.kind]].push_back(whole(times[at]));
  return stage;
}

Json samples_of(const MeasuredTimes& seen) {
  Json list = Json::array();
  for (const std::optional<exec::Estimate>& estimate : seen)
    list.push_back(estimate ? estimate->samples : 0);
  return list;
}

Nanos mean_of(const std::optional<exec::Estimate>& estimate) {
  return estimate ? std::max<Nanos>(0, estimate->mean) : 0;
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

Json with_contention(Json costs, const std::vector<Measurement>& schedules,
                     const RunContext& context) {
  const ValidSchedule& schedule = schedules[0].step.schedule;
  const exec::ContentionRequest request{schedule->stages(), schedules[0].ranks_per_device};
  const Program program = exec::contention_program(schedule, request.ranks_per_device);
  const std::vector<Timeline> steps = time_program(schedule, program, context);
  const exec::Observation observation{program, steps};
  const exec::ContentionCosts apart = exec::find_contention_costs({&observation, 1}, request);
  const std::vector<exec::Observation> real_steps = collect_observations(schedules);
  const exec::ContentionCosts together = exec::find_contention_costs(real_steps, request);
  const exec::Calibration calibration = exec::calibrate(real_steps, request.stages);
  const Nanos between_ops = mean_of(calibration.between_ops);
  Json samples = Json::array();
  for (std::size_t stage = 0; stage < apart.size(); ++stage) {
    Json entry = Json::object();
    for (std::size_t kind = 0; kind < kCostKeys.size(); ++kind) {
      const MeasuredTimes seen = choose_estimates(together[stage][kind], apart[stage][kind]);
      costs["stages"][stage] = write_kind(
          std::move(costs["stages"][stage]),
          {kind, find_contended_key(schedule, stage, kind), seen, schedule->shape.slices},
          between_ops);
      if (!exec::fill_contention(seen).empty()) entry[kCostKeys[kind]] = samples_of(seen);
    }
    samples.push_back(std::move(entry));
  }
  costs["ranks_per_device"] = request.ranks_per_device;
  costs["measured"]["samples_by_busy_ranks"] = std::move(samples);
  if (!calibration.message) return costs;
  const Nanos effective = std::max<Nanos>(0, mean_of(calibration.message) - between_ops);
  return with_messages(std::move(costs),
                       {real_steps, {observation}, request.ranks_per_device, effective}, schedule,
                       context.run);
}

}  // namespace bubblescope::tools

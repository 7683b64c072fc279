// Compares the starts and ends of steps that follow each other.
#include "traces/reports/step_period.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>

#include "sim/ir/program.h"
#include "traces/measured/step_extents.h"
#include "traces/measured/time_span.h"
#include "traces/text/time_axis.h"

namespace bubblescope::traces {

namespace {

/// Steps overlap where this part of the period counts in two of them.
constexpr double kMinOverlap = 0.005;

/// The mean time for which a rank runs ops.
double measure_busy(const MeasuredStep& step) {
  Nanos busy = 0;
  for (InstructionId id = 0; id < step.program.size(); ++id)
    if (is_compute(step.program.instructions[id].op.kind))
      busy += step.timeline.end[id] - step.timeline.start[id];
  return static_cast<double>(busy) / step.program.ranks;
}

}  // namespace

std::optional<StepPeriod> measure_step_period(const std::vector<MeasuredStep>& steps) {
  std::map<std::pair<std::int32_t, std::int64_t>, TimeSpan> found;  // by replica and step
  double busy = 0;
  bool knows_all = true;
  for (const MeasuredStep& step : steps) {
    const std::optional<TimeSpan> extent = find_extent(step);
    if (!extent) return {};
    found[{step.replica, step.number}] = *extent;
    busy += measure_busy(step) / static_cast<double>(steps.size());
    knows_all = knows_all && step.missing_ranks.empty();
  }
  Nanos periods = 0;
  Nanos overlaps = 0;
  std::int64_t pairs = 0;
  for (const auto& [key, times] : found) {
    const auto next = found.find({key.first, key.second + 1});
    if (next == found.end()) continue;
    periods += (next->second.start - times.start + next->second.end - times.end) / 2;
    overlaps += times.end - next->second.start;
    ++pairs;
  }
  if (pairs == 0 || periods <= 0) return {};
  StepPeriod period{periods / pairs, std::max<Nanos>(0, overlaps / pairs)};
  if (knows_all) period.idle = 1 - busy / static_cast<double>(period.mean);
  return period;
}

bool do_steps_overlap(const std::optional<StepPeriod>& period) {
  return period &&
         static_cast<double>(period->overlap) > kMinOverlap * static_cast<double>(period->mean);
}

std::string write_step_period_text(const std::optional<StepPeriod>& period) {
  if (!do_steps_overlap(period)) return {};
  std::string idle;
  if (period->idle)
    idle = fmt::format(", of which ranks are idle for {:.3g} %", 100 * *period->idle);
  return fmt::format(
      "period       {}  steps overlap by {}: one step every {}{}\n"
      "             (the next one begins on ranks that have ended theirs: from its first op to its "
      "last,\n             a step holds idle time of ranks that run another one)\n",
      format_time(period->mean), format_time(period->overlap), format_time(period->mean), idle);
}

void write_step_period(JsonWriter& json, const std::optional<StepPeriod>& period) {
  if (!period) {
    json.null();
    return;
  }
  json.begin_object().member("ns", period->mean).member("overlap_ns", period->overlap).key("idle");
  period->idle ? json.shortest(*period->idle) : json.null();
  json.end_object();
}

}  // namespace bubblescope::traces

// Compares ops with the median of their stage and kind.
#include "traces/measured/empty_ops.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "sim/ir/quantile.h"

namespace bubblescope::traces {

namespace {

/// Micro-batches differ less than that in their times.
constexpr Nanos kTimesShorter = 100;
/// The launch of one kernel takes longer.
constexpr Nanos kShortest = 2'000;

template <class Visit>
void for_each_recorded_op(std::span<const MeasuredStep> steps, Visit visit) {
  for (const MeasuredStep& step : steps)
    for (InstructionId id = 0; id < step.program.size(); ++id) {
      const Instruction& one = step.program.instructions[id];
      const std::vector<std::int32_t>& missing = step.missing_ranks;
      if (is_compute(one.op.kind) &&
          std::find(missing.begin(), missing.end(), one.rank) == missing.end())
        visit(step, one, step.timeline.end[id] - step.timeline.start[id]);
    }
}

}  // namespace

std::optional<std::string> describe_empty_op(std::span<const MeasuredStep> steps) {
  using StageKind = std::pair<std::int32_t, OpKind>;
  std::map<StageKind, std::vector<Nanos>> times;
  for_each_recorded_op(steps, [&](const MeasuredStep&, const Instruction& one, Nanos time) {
    times[{one.op.stage, one.op.kind}].push_back(time);
  });
  std::map<StageKind, Nanos> medians;
  for (auto& [place, of_place] : times) medians[place] = quantile(std::move(of_place), 50);
  std::optional<std::string> found;
  for_each_recorded_op(steps, [&](const MeasuredStep& step, const Instruction& one, Nanos time) {
    const Nanos usual = medians.at({one.op.stage, one.op.kind});
    if (found || kTimesShorter * time >= usual) return;
    found = fmt::format(
        "{} on rank {} takes {}{}, but usually {}: its end, or what it computed, is missing from "
        "the recording",
        to_string(one.op), one.rank, to_text(time), step.label.empty() ? "" : " in " + step.label,
        to_text(usual));
  });
  return found;
}

std::optional<std::string> describe_short_ops(std::span<const MeasuredStep> steps) {
  std::vector<Nanos> times;
  for_each_recorded_op(
      steps, [&](const MeasuredStep&, const Instruction&, Nanos time) { times.push_back(time); });
  if (times.empty()) return {};
  const Nanos median = quantile(std::move(times), 50);
  if (median >= kShortest) return {};
  return fmt::format(
      "the median op takes {}, less than the launch of one kernel: 'ts' and 'dur' are microseconds "
      "in this format; these seem to be in a larger unit",
      to_text(median));
}

}  // namespace bubblescope::traces

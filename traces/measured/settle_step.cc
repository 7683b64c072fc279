// Compares neighbours in lanes, and ops with their inputs.
#include "traces/measured/settle_step.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "sim/ir/counted.h"
#include "traces/measured/align_clocks.h"
#include "traces/measured/time_span.h"
#include "traces/measured/trim_waiting.h"

namespace bubblescope::traces {

namespace {

TimeSpan extent_of(const Timeline& timeline) { return {0, compute_makespan(timeline)}; }

/// The compute op before each one in its lane, unless the two are a pair, whose halves may run
/// together; empty for all others.
std::vector<std::optional<InstructionId>> find_previous(const Program& program) {
  std::vector<std::optional<InstructionId>> last(program.lanes.size());
  std::vector<std::optional<InstructionId>> previous(program.size());
  for (InstructionId id = 0; id < program.size(); ++id) {
    const Instruction& one = program.instructions[id];
    if (one.lane == kNoLane || !is_compute(one.op.kind)) continue;
    if (one.op.pairing != Pairing::kSecond) previous[id] = last[one.lane];
    last[one.lane] = id;
  }
  return previous;
}

Corrections find_early_op(const MeasuredStep& step) {
  const Program& program = step.program;
  Corrections corrections;
  const std::vector<bool> all(program.size(), true);
  const std::optional<EarlyOp> early = find_earliest_op(program, step.timeline, all);
  if (early && early->early > kClockTolerance)
    corrections.note_largest(
        early->early, extent_of(step.timeline),
        fmt::format("{}{}{}; times are used as they are", step.label,
                    step.label.empty() ? "" : ": ", describe_early_op(*early, program)));
  return corrections;
}

}  // namespace

void Corrections::note_largest(Nanos time, const TimeSpan& step, const std::string& text) {
  const double part =
      static_cast<double>(time) / static_cast<double>(std::max<Nanos>(1, step.length()));
  if (part <= max_fraction) return;
  max_fraction = part;
  largest_text = text;
}

void Corrections::add(const Corrections& further) {
  cut += further.cut;
  max_cut = std::max(max_cut, further.max_cut);
  trimmed += further.trimmed;
  max_trimmed = std::max(max_trimmed, further.max_trimmed);
  if (further.max_fraction <= max_fraction) return;
  max_fraction = further.max_fraction;
  largest_text = further.largest_text;
}

Remarks with_corrections(Remarks remarks, const Corrections& corrections) {
  constexpr double kMinNotedFraction = 0.002;
  constexpr double kMaxTrustedFraction = 0.05;
  if (corrections.cut > 0)
    remarks.notes.push_back(fmt::format(
        "{} taken to end where the next one of the rank starts: they overlapped by up to {}",
        counted(static_cast<std::int64_t>(corrections.cut), "op"), to_text(corrections.max_cut)));
  if (corrections.max_trimmed > kClockTolerance)
    remarks.notes.push_back(fmt::format(
        "{} taken to begin where the input ends, up to {} into the range, which waited before",
        counted(static_cast<std::int64_t>(corrections.trimmed), "op"),
        to_text(corrections.max_trimmed)));
  if (corrections.max_fraction > kMaxTrustedFraction)
    remarks.faults.push_back(corrections.largest_text);
  else if (corrections.max_fraction > kMinNotedFraction)
    remarks.doubts.push_back(corrections.largest_text);
  return remarks;
}

SettledStep settle_whole_step(MeasuredStep step) {
  if (!step.timeline.breakdown.empty()) return {std::move(step)};
  SettledStep settled{std::move(step), {}};
  settled.corrections = find_early_op(settled.step);
  const Program& program = settled.step.program;
  Timeline& timeline = settled.step.timeline;
  const TimeSpan extent = extent_of(timeline);
  const std::vector<std::optional<InstructionId>> previous = find_previous(program);
  for (InstructionId id = 0; id < program.size(); ++id) {
    if (!previous[id]) continue;
    const InstructionId before = *previous[id];
    const Nanos overlap = timeline.end[before] - timeline.start[id];
    if (overlap <= 0) continue;
    ++settled.corrections.cut;
    settled.corrections.max_cut = std::max(settled.corrections.max_cut, overlap);
    settled.corrections.note_largest(
        overlap, extent,
        fmt::format("{} and {} of rank {} overlap by {}, though a rank computes one at a time",
                    to_string(program.instructions[before].op),
                    to_string(program.instructions[id].op), program.instructions[id].rank,
                    to_text(overlap)));
    timeline.end[before] = std::max(timeline.start[before], timeline.start[id]);
    timeline.start[id] = std::max(timeline.start[id], timeline.end[before]);
    timeline.end[id] = std::max(timeline.end[id], timeline.start[id]);
  }
  return settled;
}

}  // namespace bubblescope::traces

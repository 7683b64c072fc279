// Compares neighbours in lanes, and ops with their inputs.
#include "traces/measured/settle_step.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

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

void cut_overlaps(MeasuredStep& step, Corrections& corrections) {
  Timeline& timeline = step.timeline;
  const Program& program = step.program;
  const TimeSpan extent = extent_of(timeline);
  const std::vector<std::optional<InstructionId>> previous = find_previous(program);
  for (InstructionId id = 0; id < program.size(); ++id) {
    if (!previous[id]) continue;
    const InstructionId before = *previous[id];
    const Nanos overlap = timeline.end[before] - timeline.start[id];
    if (overlap <= 0) continue;
    ++corrections.cut;
    corrections.max_cut = std::max(corrections.max_cut, overlap);
    corrections.note_largest(
        overlap, extent,
        fmt::format("{} and {} of rank {} overlap by {}, though a rank computes one at a time",
                    to_string(program.instructions[before].op),
                    to_string(program.instructions[id].op), program.instructions[id].rank,
                    to_text(overlap)));
    timeline.end[before] = std::max(timeline.start[before], timeline.start[id]);
    timeline.start[id] = std::max(timeline.start[id], timeline.end[before]);
    timeline.end[id] = std::max(timeline.end[id], timeline.start[id]);
  }
}

void note_early_op(const MeasuredStep& step, Corrections& corrections) {
  const Program& program = step.program;
  const std::vector<bool> all(program.size(), true);
  const std::optional<EarlyOp> early = find_earliest_op(program, step.timeline, all);
  if (!early || early->early <= kClocksExact) return;
  corrections.note_largest(
      early->early, extent_of(step.timeline),
      fmt::format("{}{}{}; times are used as they are", step.label, step.label.empty() ? "" : ": ",
                  describe_early_op(*early, program)));
}

}  // namespace

void settle_whole_step(MeasuredStep& step, Corrections& corrections) {
  if (!step.timeline.breakdown.empty()) return;
  note_early_op(step, corrections);
  cut_overlaps(step, corrections);
}

}  // namespace bubblescope::traces

// Matches ops and measures their shifts.
#include "sim/analysis/timeline_difference.h"

#include <algorithm>
#include <cstdlib>
#include <tuple>
#include <utility>

#include "sim/ir/quantile.h"

namespace bubblescope::inline sim {

namespace {

/// A compute op with its times, relative to the start of its own step.
struct TimedOp {
  std::int32_t rank = 0;
  Op op;
  Nanos start = 0;
  Nanos duration = 0;

  auto key() const { return std::tie(rank, op.stage, op.microbatch, op.slice, op.kind); }
};

std::vector<TimedOp> sorted_ops(const Program& program, const Timeline& timeline) {
  const Nanos step_start = find_step_bounds(timeline).start;
  std::vector<TimedOp> ops;
  for (InstructionId id = 0; id < program.size(); ++id) {
    const Instruction& instruction = program.instructions[id];
    if (!is_compute(instruction.op.kind)) continue;
    ops.push_back({instruction.rank, instruction.op, timeline.start[id] - step_start,
                   timeline.end[id] - timeline.start[id]});
  }
  std::sort(ops.begin(), ops.end(),
            [](const TimedOp& a, const TimedOp& b) { return a.key() < b.key(); });
  return ops;
}

}  // namespace

TimelineDifference compare_timelines(const Program& program_a, const Timeline& timeline_a,
                                     const Program& program_b, const Timeline& timeline_b) {
  const std::vector<TimedOp> ops_a = sorted_ops(program_a, timeline_a);
  const std::vector<TimedOp> ops_b = sorted_ops(program_b, timeline_b);
  TimelineDifference difference;
  difference.makespan_a = compute_makespan(timeline_a);
  difference.makespan_b = compute_makespan(timeline_b);
  auto a = ops_a.begin();
  auto b = ops_b.begin();
  while (a != ops_a.end() || b != ops_b.end()) {
    if (b == ops_b.end() || (a != ops_a.end() && a->key() < b->key())) {
      difference.only_in_a.push_back({a->rank, a->op});
      ++a;
    } else if (a == ops_a.end() || b->key() < a->key()) {
      difference.only_in_b.push_back({b->rank, b->op});
      ++b;
    } else {
      difference.shifts.push_back(
          {a->rank, a->op, b->start - a->start, b->duration - a->duration, a->start});
      ++a;
      ++b;
    }
  }
  std::stable_sort(difference.shifts.begin(), difference.shifts.end(),
                   [](const OpShift& one, const OpShift& two) { return one.start < two.start; });
  return difference;
}

Nanos compute_start_shift_quantile(const TimelineDifference& difference, std::size_t percent) {
  if (difference.shifts.empty()) return 0;
  std::vector<Nanos> sizes;
  for (const OpShift& shift : difference.shifts) sizes.push_back(std::abs(shift.start_shift));
  return quantile(std::move(sizes), percent);
}

std::optional<OpShift> find_first_divergence(const TimelineDifference& difference,
                                             Nanos tolerance) {
  for (const OpShift& shift : difference.shifts)
    if (std::abs(shift.start_shift) > tolerance || std::abs(shift.duration_shift) > tolerance)
      return shift;
  return {};
}

}  // namespace bubblescope::inline sim

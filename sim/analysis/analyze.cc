// Assembles a BubbleReport.
#include "sim/analysis/analyze.h"

#include <algorithm>
#include <utility>

#include "sim/analysis/asynchronous.h"
#include "sim/analysis/idle.h"
#include "sim/analysis/lower_bound.h"
#include "sim/analysis/memory_curve.h"
#include "sim/analysis/repeats.h"
#include "sim/ir/range.h"

namespace bubblescope::inline sim {

namespace {

/// Returns the bounds of a step. Reports sum durations, per rank and over all ranks, so the sums
/// must be in range.
StepBounds find_countable_bounds(const Program& program, const Timeline& timeline) {
  if (program.size() == 0) return {};
  DurationSum sum;
  StepBounds bounds{timeline.start[0], timeline.end[0]};
  for (InstructionId id = 0; id < program.size(); ++id) {
    sum.add(timeline.end[id] - timeline.start[id]);
    bounds.start = std::min(bounds.start, timeline.start[id]);
    bounds.end = std::max(bounds.end, timeline.end[id]);
  }
  sum.expect_in_range();
  expect_in_range(bounds.end - bounds.start, program.ranks);
  return bounds;
}

}  // namespace

Bubble measure_bubble(const BubbleReport& report) {
  Nanos idle = 0;
  for (const RankReport& rank : report.ranks) idle += rank.idle;
  Bubble bubble;
  bubble.ratio = fraction(idle, report.makespan * static_cast<Nanos>(report.ranks.size()));
  bubble.overhead = fraction(report.makespan - report.ideal, report.ideal);
  bubble.span_rate = fraction(report.max_span - report.ideal, report.max_span);
  bubble.time = report.makespan - report.ideal;
  return bubble;
}

BubbleReport with_totals(BubbleReport report) {
  report.makespan = report.ranks.empty() ? 0 : report.ranks[0].busy + report.ranks[0].idle;
  for (const RankReport& rank : report.ranks) {
    report.max_span = std::max(report.max_span, rank.last_end - rank.first_start);
    report.ideal = std::max(report.ideal, rank.busy);
  }
  report.bubble = measure_bubble(report);
  return report;
}

namespace {

/// Reports the times of all ranks.
BubbleReport report_times(const ValidSchedule& schedule, const Program& program,
                          const Timeline& timeline, const Blockers& blockers,
                          const Repeats& repeats = {}) {
  const StepBounds bounds = find_countable_bounds(program, timeline);
  BubbleReport report;
  report.source = timeline.source;
  report.schedule = schedule->name;
  report.shape = schedule->shape;
  report.ranks = account_for_time(program, timeline, blockers, repeats, bounds);
  report = with_totals(std::move(report));
  report.period = find_period(schedule, program, timeline);
  return report;
}

/// Adds what all ranks hold.
BubbleReport with_memory(BubbleReport report, const ValidSchedule& schedule, const Program& program,
                         const Timeline& timeline, const MemoryModel& memory) {
  const std::vector<Peak> peaks = find_peaks(schedule, program, timeline, memory);
  report.memory = memory;
  for (std::size_t rank = 0; rank < peaks.size(); ++rank) report.ranks[rank].peak = peaks[rank];
  const std::vector<WeightReport> weights = account_for_weights(schedule, memory);
  for (std::size_t rank = 0; rank < weights.size(); ++rank)
    report.ranks[rank].weights = weights[rank];
  return report;
}

}  // namespace

BubbleReport analyze(const ValidSchedule& schedule, const Program& program,
                     const Timeline& timeline, const MemoryModel& memory, const Blockers& blockers,
                     const Repeats& repeats) {
  BubbleReport report = with_memory(report_times(schedule, program, timeline, blockers, repeats),
                                    schedule, program, timeline, memory);
  report.lower_bound = lower_bound(program, timeline, repeats);
  return report;
}

BubbleReport analyze_briefly(const ValidSchedule& schedule, const Program& program,
                             const Timeline& timeline, const MemoryModel& memory,
                             LowerBound bound) {
  const Blockers blockers(program, timeline);
  BubbleReport report = with_memory(report_times(schedule, program, timeline, blockers), schedule,
                                    program, timeline, memory);
  if (bound == LowerBound::kFind) report.lower_bound = lower_bound(program, timeline);
  return report;
}

BubbleReport analyze(const ValidSchedule& schedule, const Program& program,
                     const Timeline& timeline, const MemoryModel& memory, Slack slack) {
  const Blockers blockers(program, timeline);
  BubbleReport report = analyze(schedule, program, timeline, memory, blockers, Repeats{});
  report.critical_path = find_critical_path(program, timeline, blockers);
  if (slack == Slack::kFind) report.slack = compute_slack(program, timeline, blockers);
  return report;
}

}  // namespace bubblescope::inline sim

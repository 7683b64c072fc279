// Finds gaps in measured steps.
#include "sim/analysis/pauses.h"

#include <algorithm>

#include "sim/analysis/mean.h"
#include "sim/ir/awaits_message.h"
#include "sim/ir/quantile.h"

namespace bubblescope::inline sim {

namespace {

constexpr double kOfMedianOp = 0.25;
constexpr double kOfMedianGap = 5;
constexpr double kRare = 0.05;

struct Gap {
  Nanos time = 0;
  bool awaits = false;       ///< whether the op waits for anything
  bool is_behind_op = true;  ///< whether the op before it on its rank was the last that it awaited
};

/// Returns the gap before every compute op; 0 for the first op of a rank that waits for nothing.
std::vector<Gap> find_gaps(const ObservedStep& step) {
  std::vector<Gap> gaps(step.program.size());
  std::vector<Nanos> lane_end(step.program.lanes.size(), -1);
  for (InstructionId id = 0; id < step.program.size(); ++id) {
    const Instruction& one = step.program.instructions[id];
    const Nanos free = one.lane == kNoLane ? -1 : lane_end[one.lane];
    Nanos ready = free;
    for (const InstructionId on : step.program.dependencies_of(id))
      ready = std::max(ready, step.timeline.end[on]);
    if (one.lane != kNoLane) lane_end[one.lane] = step.timeline.end[id];
    if (ready >= 0 && is_compute(one.op.kind))
      gaps[id] = {std::max<Nanos>(0, step.timeline.start[id] - ready), true, ready == free};
  }
  return gaps;
}

/// The least gap on every rank that is a pause; none where pauses would not be rare.
std::vector<Nanos> find_limits(const ObservedStep& step, const std::vector<Gap>& gaps) {
  const auto ranks = static_cast<std::size_t>(step.program.ranks);
  std::vector<std::vector<Nanos>> ops(ranks);
  std::vector<std::vector<Nanos>> gaps_of(ranks);
  step.for_each_compute([&](InstructionId id, const Instruction& one) {
    ops[static_cast<std::size_t>(one.rank)].push_back(step.duration_of(id));
    gaps_of[static_cast<std::size_t>(one.rank)].push_back(gaps[id].time);
  });
  std::vector<Nanos> limits(ranks, 0);
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    if (ops[rank].empty()) continue;
    const double of_op = kOfMedianOp * static_cast<double>(quantile(ops[rank], 50));
    const double of_gap = kOfMedianGap * static_cast<double>(quantile(gaps_of[rank], 50));
    limits[rank] = static_cast<Nanos>(std::max(of_op, of_gap)) + 1;
    const auto count = std::count_if(gaps_of[rank].begin(), gaps_of[rank].end(),
                                     [&](Nanos gap) { return gap >= limits[rank]; });
    const auto max_count = std::max(1.0, kRare * static_cast<double>(ops[rank].size()));
    if (static_cast<double>(count) > max_count)
      limits[rank] = *std::max_element(gaps_of[rank].begin(), gaps_of[rank].end()) + 1;
  }
  return limits;
}

/// Whether a profiler recorded the step, but none of its messages.
bool lacks_messages(const ObservedStep& step) {
  if (!step.timeline.may_lack_messages) return false;
  for (InstructionId id = 0; id < step.program.size(); ++id)
    if (is_message(step.program.instructions[id]) && step.duration_of(id) > 0) return false;
  return true;
}

/// Calls visit(id, instruction, gap, kind) for every compute op.
template <class Visit>
void for_each_gap(const ObservedStep& step, Visit visit) {
  const std::vector<Gap> gaps = find_gaps(step);
  const std::vector<Nanos> limits = find_limits(step, gaps);
  const bool no_messages = lacks_messages(step);
  step.for_each_compute([&](InstructionId id, const Instruction& one) {
    const bool may_wait = no_messages && awaits_message(step.program, id);
    const bool is_long = gaps[id].time >= limits[static_cast<std::size_t>(one.rank)];
    visit(id, one, gaps[id],
          is_long    ? GapKind::kPause
          : may_wait ? GapKind::kUnseenMessage
                     : GapKind::kLaunch);
  });
}

}  // namespace

Counterfactual with_gaps(std::optional<GapKind> without) {
  return [without](std::size_t, const ReplicatedStep& step, std::vector<Durations> durations) {
    for (std::size_t replica = 0; replica < step.size(); ++replica)
      for_each_gap(step[replica],
                   [&](InstructionId id, const Instruction&, const Gap& gap, GapKind kind) {
                     if (kind != without) durations[replica][id] += gap.time;
                   });
    return durations;
  };
}

std::vector<Nanos> sum_gaps(std::span<const ReplicatedStep> steps, GapKind kind) {
  std::vector<Nanos> sums(static_cast<std::size_t>(steps.front().front().program.ranks), 0);
  for (const ReplicatedStep& step : steps)
    for (const ObservedStep& replica : step)
      for_each_gap(replica,
                   [&](InstructionId, const Instruction& one, const Gap& gap, GapKind of_gap) {
                     if (of_gap == kind) sums[static_cast<std::size_t>(one.rank)] += gap.time;
                   });
  return sums;
}

LaunchGaps find_launch_gaps(std::span<const ReplicatedStep> steps) {
  Mean behind_ops;
  Mean behind_messages;
  for (const ReplicatedStep& step : steps)
    for (const ObservedStep& replica : step)
      for_each_gap(replica, [&](InstructionId, const Instruction&, const Gap& gap, GapKind kind) {
        if (kind != GapKind::kLaunch || !gap.awaits) return;
        (gap.is_behind_op ? behind_ops : behind_messages).add(static_cast<double>(gap.time));
      });
  return {behind_ops.count == 0 ? 0 : behind_ops.value(),
          behind_messages.count == 0 ? 0 : behind_messages.value()};
}

std::vector<double> find_gap_shares(std::span<const ReplicatedStep> steps) {
  std::vector<double> gaps(static_cast<std::size_t>(steps.front().front().program.ranks), 0);
  double all = 0;
  for (const ReplicatedStep& step : steps)
    for (const ObservedStep& replica : step) {
      all += static_cast<double>(compute_makespan(replica.timeline));
      for_each_gap(replica, [&](InstructionId, const Instruction& one, const Gap& gap, GapKind) {
        gaps[static_cast<std::size_t>(one.rank)] += static_cast<double>(gap.time);
      });
    }
  for (double& of_rank : gaps) of_rank = all > 0 ? of_rank / all : 0;
  return gaps;
}

std::int64_t count_pauses(std::span<const ReplicatedStep> steps) {
  std::int64_t count = 0;
  for (const ReplicatedStep& step : steps)
    for (const ObservedStep& replica : step)
      for_each_gap(replica, [&](InstructionId, const Instruction&, const Gap&, GapKind kind) {
        count += kind == GapKind::kPause ? 1 : 0;
      });
  return count;
}

}  // namespace bubblescope::inline sim

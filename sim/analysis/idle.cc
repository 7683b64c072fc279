// Busy time by kind and idle time by cause, as integers that add up.
#include "sim/analysis/idle.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "sim/analysis/repeats.h"

namespace bubblescope::inline sim {

std::string_view name(IdleCause cause) {
  switch (cause) {
    case IdleCause::kWarmup: return "warmup";
    case IdleCause::kImbalance: return "imbalance";
    case IdleCause::kDependency: return "dependency";
    case IdleCause::kCommunication: return "communication";
    case IdleCause::kMemory: return "memory";
    case IdleCause::kDrain: return "drain";
    case IdleCause::kSync: return "sync";
    case IdleCause::kArrival: return "arrival";
    case IdleCause::kLaunch: return "launch";
  }
  return "?";
}

std::string_view name(BusyKind kind) {
  switch (kind) {
    case BusyKind::kF: return "F";
    case BusyKind::kI: return "I";
    case BusyKind::kW: return "W";
    case BusyKind::kB: return "B";
    case BusyKind::kR: return "R";
    case BusyKind::kSend: return "send";
    case BusyKind::kOptimizer: return "opt";
  }
  return "?";
}

BusyKind classify_busy(OpKind kind) {
  if (kind == OpKind::kForward) return BusyKind::kF;
  if (kind == OpKind::kBackward) return BusyKind::kB;
  if (kind == OpKind::kInputGrad) return BusyKind::kI;
  if (kind == OpKind::kWeightGrad) return BusyKind::kW;
  if (kind == OpKind::kRecompute) return BusyKind::kR;
  return is_message(kind) || is_send_wait(kind) ? BusyKind::kSend : BusyKind::kOptimizer;
}

std::vector<IdleCause> choose_idle_causes(const BubbleReport& report) {
  std::vector<IdleCause> causes;
  for (std::size_t at = 0; at < kIdleCauses; ++at) {
    const bool is_rare = at >= static_cast<std::size_t>(IdleCause::kArrival);
    const bool occurs =
        std::any_of(report.ranks.begin(), report.ranks.end(),
                    [=](const RankReport& rank) { return rank.idle_by_cause[at] != 0; });
    if (!is_rare || occurs) causes.push_back(static_cast<IdleCause>(at));
  }
  return causes;
}

namespace {

Nanos& entry_of(RankReport& rank, IdleCause cause) {
  return rank.idle_by_cause[static_cast<std::size_t>(cause)];
}
Nanos& entry_of(RankReport& rank, BusyKind kind) {
  return rank.busy_by_kind[static_cast<std::size_t>(kind)];
}

/// The idle time of a rank before one of its instructions.
struct Gap {
  InstructionId before = 0;
  Nanos start = 0;
  bool is_first = false;  ///< whether the rank has run nothing before
};

/// Returns the cause of waiting for such an instruction; empty for compute ops.
std::optional<IdleCause> cause_of(const Instruction& instruction) {
  if (is_message(instruction)) return IdleCause::kCommunication;
  if (is_copy(instruction.op.kind)) return IdleCause::kMemory;
  if (is_collective(instruction.op.kind)) return IdleCause::kSync;
  if (is_arrival(instruction)) return IdleCause::kArrival;
  return {};
}

/// Returns when only the launch of an op was missing: its inputs had come, and its rank was free.
/// An op that begins as soon as its last input comes has no launch, so this is its start; so it is
/// in imported steps, which do not say all that ops waited for.
Nanos find_launch(const Program& program, const Timeline& timeline, const Blockers& blockers,
                  const Gap& gap) {
  const Nanos start = timeline.start[gap.before];
  if (timeline.is_imported || !is_compute(program.instructions[gap.before].op.kind)) return start;
  const std::optional<InstructionId> last = blockers.find_last_dependency(gap.before);
  if (!last || timeline.end[*last] <= gap.start) return gap.start;
  const bool rests = timeline.gap_before(gap.before) > 0;
  return rests ? std::min(start, timeline.end[*last]) : start;
}

/// Calls visit(cause, start, end), the latest first, for the parts of the gap before an instruction
/// in which messages and copies were in transit, collectives ran or an op was launched. It follows
/// the instructions that ended the gap, through posts and waits, back to the compute op that they
/// depend on. All waiting before an optimizer step counts as collective. A message lasts until the
/// op that waited for it starts, as its cost does.
template <class Visit>
void visit_gap_parts(const Program& program, const Timeline& timeline, const Blockers& blockers,
                     const Gap& gap, Visit visit) {
  Nanos until = timeline.start[gap.before];
  if (program.instructions[gap.before].op.kind == OpKind::kOptimizer)
    return visit(IdleCause::kSync, gap.start, until);
  const Nanos launch = find_launch(program, timeline, blockers, gap);
  if (launch < until) visit(IdleCause::kLaunch, launch, until);
  until = launch;
  std::optional<InstructionId> at = blockers.find_last_dependency(gap.before);
  while (at && timeline.end[*at] > gap.start) {
    const Instruction& instruction = program.instructions[*at];
    const Nanos from = std::max(gap.start, timeline.start[*at]);
    if (is_compute(instruction.op.kind)) break;
    // Waits take no time, except those that keep a measured queue until its sends are done.
    const bool keeps_queue = instruction.role == Role::kWait && timeline.end[*at] > from;
    const std::optional<IdleCause> cause =
        keeps_queue ? IdleCause::kCommunication : cause_of(instruction);
    const bool is_received = cause == IdleCause::kCommunication && !timeline.is_imported;
    const Nanos to = is_received ? until : std::min(until, timeline.end[*at]);
    if (cause && from < to) visit(*cause, from, to);
    until = std::min(until, from);
    at = blockers.blocker(*at);
  }
}

/// Calls visit(IdleGap) for the parts of the gap before an instruction, the latest first; together
/// they fill it. The time that visit_gap_parts() leaves is waiting for ops of other ranks. Before a
/// rank's first op it is warm-up, and so is all other time but collectives and arrivals.
template <class Visit>
void visit_gap(const Program& program, const Timeline& timeline, const Blockers& blockers,
               const Gap& gap, Visit& visit) {
  const std::int32_t rank = program.instructions[gap.before].rank;
  const IdleCause rest = gap.is_first ? IdleCause::kWarmup : IdleCause::kDependency;
  Nanos until = timeline.start[gap.before];
  visit_gap_parts(program, timeline, blockers, gap, [&](IdleCause cause, Nanos start, Nanos end) {
    if (gap.is_first && cause != IdleCause::kSync && cause != IdleCause::kArrival) return;
    if (end < until) visit(IdleGap{rank, rest, end, until, gap.before});
    if (start < end) visit(IdleGap{rank, cause, start, end, gap.before});
    until = start;
  });
  if (gap.start < until) visit(IdleGap{rank, rest, gap.start, until, gap.before});
}

/// Calls visit(IdleGap) for all idle time of every rank but the drain: first for the gaps before
/// its ops, then for collectives that end after its last op. The gaps of a rank come in time order,
/// the parts of a gap in reverse.
template <class Visit>
void visit_idle(const Program& program, const Timeline& timeline, const Blockers& blockers,
                Nanos step_start, Visit visit) {
  const auto ranks = static_cast<std::size_t>(program.ranks);
  std::vector<Nanos> idle_from(ranks, step_start);
  std::vector<bool> started(ranks, false);
  bool has_collectives = false;
  for (InstructionId id = 0; id < program.size(); ++id) {
    const Instruction& instruction = program.instructions[id];
    has_collectives = has_collectives || is_collective(instruction.op.kind);
    if (instruction.lane >= ranks) continue;
    const auto rank = static_cast<std::size_t>(instruction.rank);
    if (timeline.start[id] > idle_from[rank])
      visit_gap(program, timeline, blockers, {id, idle_from[rank], !started[rank]}, visit);
    idle_from[rank] = timeline.end[id];
    started[rank] = true;
  }
  for (InstructionId id = 0; has_collectives && id < program.size(); ++id) {
    const Instruction& instruction = program.instructions[id];
    if (!is_collective(instruction.op.kind) || instruction.role != Role::kWork) continue;
    Nanos& from = idle_from[static_cast<std::size_t>(instruction.rank)];
    if (timeline.end[id] <= from) continue;
    visit(IdleGap{instruction.rank, IdleCause::kSync, from, timeline.end[id], {}});
    from = timeline.end[id];
  }
}

void reclassify_imbalance(RankReport& rank, Nanos busiest) {
  const Nanos imbalance = std::min(busiest - rank.busy, entry_of(rank, IdleCause::kDependency));
  entry_of(rank, IdleCause::kDependency) -= imbalance;
  entry_of(rank, IdleCause::kImbalance) += imbalance;
}

}  // namespace

std::vector<RankReport> account_for_time(const Program& program, const Timeline& timeline,
                                         const Blockers& blockers) {
  return account_for_time(program, timeline, blockers, {}, find_step_bounds(timeline));
}

std::vector<RankReport> account_for_time(const Program& program, const Timeline& timeline,
                                         const Blockers& blockers, const Repeats& repeats,
                                         const StepBounds& bounds) {
  std::vector<RankReport> ranks(program.ranks);
  std::vector<bool> started(program.ranks, false);
  for (RankReport& rank : ranks) rank.first_start = rank.last_end = bounds.start;
  for (InstructionId id = 0; id < program.size(); ++id) {
    const Instruction& instruction = program.instructions[id];
    RankReport& rank = ranks[instruction.rank];
    const std::int64_t times = repeats.count(timeline.start[id]);
    if (is_message(instruction)) rank.sends += times;
    if (instruction.lane >= static_cast<std::uint32_t>(program.ranks)) continue;
    if (!started[instruction.rank]) rank.first_start = timeline.start[id];
    started[instruction.rank] = true;
    rank.last_end = timeline.end[id];
    const Nanos duration = times * (timeline.end[id] - timeline.start[id]);
    rank.busy += duration;
    entry_of(rank, classify_busy(instruction.op.kind)) += duration;
  }
  visit_idle(program, timeline, blockers, bounds.start, [&](const IdleGap& gap) {
    RankReport& rank = ranks[gap.rank];
    const std::int64_t times = gap.before ? repeats.count(timeline.start[*gap.before]) : 1;
    entry_of(rank, gap.cause) += times * (gap.end - gap.start);
    if (!gap.before) rank.last_end = gap.end;  // the collectives after its ops belong to its time
  });
  return complete_idle_times(std::move(ranks), bounds, repeats.added());
}

std::vector<RankReport> complete_idle_times(std::vector<RankReport> ranks, const StepBounds& bounds,
                                            Nanos added) {
  Nanos busiest = 0;
  for (const RankReport& rank : ranks) busiest = std::max(busiest, rank.busy);
  for (RankReport& rank : ranks) {
    rank.idle = bounds.end - bounds.start + added - rank.busy;
    entry_of(rank, IdleCause::kDrain) = bounds.end - rank.last_end;
    rank.last_end += added;
    reclassify_imbalance(rank, busiest);
  }
  return ranks;
}

namespace {

/// Sorts a rank's gaps by time, and joins those that belong to one wait.
std::vector<IdleGap> join_gaps(std::vector<IdleGap> gaps) {
  std::stable_sort(gaps.begin(), gaps.end(), [](const IdleGap& left, const IdleGap& right) {
    return left.start < right.start;
  });
  std::vector<IdleGap> joined;
  for (const IdleGap& gap : gaps) {
    const bool continues = !joined.empty() && joined.back().end == gap.start &&
                           joined.back().cause == gap.cause && joined.back().before == gap.before;
    if (continues)
      joined.back().end = gap.end;
    else
      joined.push_back(gap);
  }
  return joined;
}

/// Turns the first `imbalance` nanoseconds of a rank's dependency gaps into imbalance.
std::vector<IdleGap> mark_imbalance(const std::vector<IdleGap>& gaps, Nanos imbalance) {
  std::vector<IdleGap> marked;
  for (IdleGap gap : gaps) {
    if (gap.cause == IdleCause::kDependency && imbalance > 0) {
      IdleGap part = gap;
      part.cause = IdleCause::kImbalance;
      part.end = std::min(gap.end, gap.start + imbalance);
      imbalance -= part.end - part.start;
      gap.start = part.end;
      marked.push_back(part);
    }
    if (gap.start < gap.end) marked.push_back(gap);
  }
  return marked;
}

}  // namespace

std::vector<IdleGap> find_idle_gaps(const Program& program, const Timeline& timeline) {
  const Blockers blockers(program, timeline);
  const StepBounds bounds = find_step_bounds(timeline);
  const std::vector<RankReport> ranks = account_for_time(program, timeline, blockers, {}, bounds);
  std::vector<std::vector<IdleGap>> gaps(ranks.size());
  visit_idle(program, timeline, blockers, bounds.start,
             [&](const IdleGap& gap) { gaps[static_cast<std::size_t>(gap.rank)].push_back(gap); });
  std::vector<IdleGap> all;
  for (std::size_t rank = 0; rank < gaps.size(); ++rank) {
    const Nanos last_end = ranks[rank].last_end;
    if (last_end < bounds.end)
      gaps[rank].push_back(
          {static_cast<std::int32_t>(rank), IdleCause::kDrain, last_end, bounds.end, {}});
    const std::vector<IdleGap> marked =
        mark_imbalance(join_gaps(std::move(gaps[rank])),
                       ranks[rank].idle_by_cause[static_cast<std::size_t>(IdleCause::kImbalance)]);
    all.insert(all.end(), marked.begin(), marked.end());
  }
  return all;
}

}  // namespace bubblescope::inline sim

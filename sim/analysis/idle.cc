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
};

/// The part of a gap that is not waiting for ops of other ranks.
struct GapTimes {
  Nanos messages = 0;
  Nanos copies = 0;  ///< activations copied out of a memory, or back
  Nanos collectives = 0;
  Nanos arrivals = 0;  ///< of micro-batches
  Nanos launches = 0;  ///< of an op that is ready

  Nanos total() const { return messages + copies + collectives + arrivals + launches; }
};

/// The cause of waiting for such an instruction; empty for compute ops.
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

GapTimes measure_gap(const Program& program, const Timeline& timeline, const Blockers& blockers,
                     const Gap& gap) {
  GapTimes gap_times;
  visit_gap_parts(program, timeline, blockers, gap, [&](IdleCause cause, Nanos start, Nanos end) {
    if (cause == IdleCause::kCommunication) gap_times.messages += end - start;
    if (cause == IdleCause::kMemory) gap_times.copies += end - start;
    if (cause == IdleCause::kSync) gap_times.collectives += end - start;
    if (cause == IdleCause::kArrival) gap_times.arrivals += end - start;
    if (cause == IdleCause::kLaunch) gap_times.launches += end - start;
  });
  return gap_times;
}

/// A collective that ends after a rank's last op extends the rank's time until then.
void extend_to_collectives(const Program& program, const Timeline& timeline,
                           std::vector<RankReport>& ranks) {
  for (InstructionId id = 0; id < program.size(); ++id) {
    const Instruction& instruction = program.instructions[id];
    if (!is_collective(instruction.op.kind) || instruction.role != Role::kWork) continue;
    RankReport& rank = ranks[instruction.rank];
    if (timeline.end[id] <= rank.last_end) continue;
    entry_of(rank, IdleCause::kSync) += timeline.end[id] - rank.last_end;
    rank.last_end = timeline.end[id];
  }
}

void reclassify_imbalance(RankReport& rank, Nanos busiest) {
  const Nanos imbalance = std::min(busiest - rank.busy, entry_of(rank, IdleCause::kDependency));
  entry_of(rank, IdleCause::kDependency) -= imbalance;
  entry_of(rank, IdleCause::kImbalance) += imbalance;
}

}  // namespace

std::vector<RankReport> account_for_time(const Program& program, const Timeline& timeline) {
  return account_for_time(program, timeline, Blockers(program, timeline));
}

std::vector<RankReport> account_for_time(const Program& program, const Timeline& timeline,
                                         const Blockers& blockers) {
  return account_for_time(program, timeline, blockers, {});
}

std::vector<RankReport> account_for_time(const Program& program, const Timeline& timeline,
                                         const Blockers& blockers, const Repeats& repeats) {
  const StepBounds bounds = find_step_bounds(timeline);
  std::vector<RankReport> ranks(program.ranks);
  std::vector<bool> started(program.ranks, false);
  bool has_collectives = false;
  for (RankReport& rank : ranks) rank.first_start = rank.last_end = bounds.start;
  for (InstructionId id = 0; id < program.size(); ++id) {
    const Instruction& instruction = program.instructions[id];
    RankReport& rank = ranks[instruction.rank];
    const std::int64_t times = repeats.count(timeline.start[id]);
    if (is_message(instruction)) rank.sends += times;
    if (is_collective(instruction.op.kind)) has_collectives = true;
    if (instruction.lane >= static_cast<std::uint32_t>(program.ranks)) continue;
    const Nanos gap = timeline.start[id] - rank.last_end;
    if (!started[instruction.rank]) {
      started[instruction.rank] = true;
      rank.first_start = timeline.start[id];
      const GapTimes gap_times = measure_gap(program, timeline, blockers, {id, rank.last_end});
      entry_of(rank, IdleCause::kSync) = gap_times.collectives;
      entry_of(rank, IdleCause::kArrival) = gap_times.arrivals;
      entry_of(rank, IdleCause::kWarmup) = gap - gap_times.collectives - gap_times.arrivals;
    } else if (gap > 0) {
      const GapTimes gap_times = measure_gap(program, timeline, blockers, {id, rank.last_end});
      entry_of(rank, IdleCause::kCommunication) += times * gap_times.messages;
      entry_of(rank, IdleCause::kMemory) += times * gap_times.copies;
      entry_of(rank, IdleCause::kSync) += times * gap_times.collectives;
      entry_of(rank, IdleCause::kArrival) += times * gap_times.arrivals;
      entry_of(rank, IdleCause::kLaunch) += times * gap_times.launches;
      entry_of(rank, IdleCause::kDependency) += times * (gap - gap_times.total());
    }
    rank.last_end = timeline.end[id];
    const Nanos duration = times * (timeline.end[id] - timeline.start[id]);
    rank.busy += duration;
    entry_of(rank, classify_busy(instruction.op.kind)) += duration;
  }
  if (has_collectives) extend_to_collectives(program, timeline, ranks);
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

/// Walks through the step once and lists every rank's gaps.
class GapFinder {
 public:
  GapFinder(const Program& program, const Timeline& timeline)
      : program_(program),
        timeline_(timeline),
        blockers_(program, timeline),
        bounds_(find_step_bounds(timeline)),
        gaps_(static_cast<std::size_t>(program.ranks)),
        idle_from_(static_cast<std::size_t>(program.ranks), bounds_.start),
        started_(static_cast<std::size_t>(program.ranks), false) {}

  std::vector<std::vector<IdleGap>> run() && {
    for (InstructionId id = 0; id < program_.size(); ++id)
      if (program_.instructions[id].lane < static_cast<std::uint32_t>(program_.ranks)) end_gap(id);
    for (InstructionId id = 0; id < program_.size(); ++id) {
      const Instruction& instruction = program_.instructions[id];
      if (is_collective(instruction.op.kind) && instruction.role == Role::kWork)
        add({instruction.rank, IdleCause::kSync, 0, timeline_.end[id], {}});
    }
    for (std::int32_t rank = 0; rank < program_.ranks; ++rank)
      add({rank, IdleCause::kDrain, 0, bounds_.end, {}});
    return std::move(gaps_);
  }

 private:
  /// The walk finds parts from the last to the first. The time between them is waiting for ops of
  /// other ranks or, before the rank's first op, warm-up.
  void end_gap(InstructionId id) {
    const std::int32_t rank = program_.instructions[id].rank;
    const auto at = static_cast<std::size_t>(rank);
    const bool first = !started_[at];
    const IdleCause rest = first ? IdleCause::kWarmup : IdleCause::kDependency;
    std::vector<IdleGap> pieces;
    visit_gap_parts(program_, timeline_, blockers_, {id, idle_from_[at]},
                    [&](IdleCause cause, Nanos start, Nanos end) {
                      if (!first || cause == IdleCause::kSync || cause == IdleCause::kArrival)
                        pieces.push_back({rank, cause, start, end, id});
                    });
    for (auto piece = pieces.rbegin(); piece != pieces.rend(); ++piece) {
      add({rank, rest, 0, piece->start, id});
      add(*piece);
    }
    add({rank, rest, 0, timeline_.start[id], id});
    idle_from_[at] = timeline_.end[id];
    started_[at] = true;
  }

  /// Adds a gap from the end of the accounted time to the end of `gap`; merges it with the previous
  /// gap if both belong to the same wait.
  void add(IdleGap gap) {
    const auto at = static_cast<std::size_t>(gap.rank);
    gap.start = idle_from_[at];
    if (gap.end <= gap.start) return;
    idle_from_[at] = gap.end;
    std::vector<IdleGap>& gaps = gaps_[at];
    const bool continues = !gaps.empty() && gaps.back().end == gap.start &&
                           gaps.back().cause == gap.cause && gaps.back().before == gap.before;
    if (continues)
      gaps.back().end = gap.end;
    else
      gaps.push_back(gap);
  }

  const Program& program_;
  const Timeline& timeline_;
  Blockers blockers_;
  StepBounds bounds_;
  std::vector<std::vector<IdleGap>> gaps_;  ///< [rank]
  std::vector<Nanos> idle_from_;            ///< [rank]: the end of the accounted time
  std::vector<bool> started_;               ///< [rank]: whether it has run its first op
};

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
  std::vector<RankReport> ranks = account_for_time(program, timeline);
  const std::vector<std::vector<IdleGap>> gaps = GapFinder(program, timeline).run();
  std::vector<IdleGap> all;
  for (std::size_t rank = 0; rank < gaps.size(); ++rank) {
    const std::vector<IdleGap> marked =
        mark_imbalance(gaps[rank], entry_of(ranks[rank], IdleCause::kImbalance));
    all.insert(all.end(), marked.begin(), marked.end());
  }
  return all;
}

}  // namespace bubblescope::inline sim

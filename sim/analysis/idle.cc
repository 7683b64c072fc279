// Busy by kind, idle by cause: integers that add up.
#include "sim/analysis/idle.h"

#include <algorithm>
#include <optional>

#include "sim/analysis/holder.h"

namespace bubblescope {

std::string_view name(IdleCause cause) {
  switch (cause) {
    case IdleCause::kWarmup: return "warmup";
    case IdleCause::kImbalance: return "imbalance";
    case IdleCause::kDependency: return "dependency";
    case IdleCause::kCommunication: return "communication";
    case IdleCause::kMemory: return "memory";
    case IdleCause::kDrain: return "drain";
    case IdleCause::kSync: return "sync";
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

BusyKind busy_kind(OpKind kind) {
  switch (kind) {
    case OpKind::kForward: return BusyKind::kF;
    case OpKind::kBackward: return BusyKind::kB;
    case OpKind::kInputGrad: return BusyKind::kI;
    case OpKind::kWeightGrad: return BusyKind::kW;
    case OpKind::kRecompute: return BusyKind::kR;
    case OpKind::kSendForward:
    case OpKind::kRecvForward:
    case OpKind::kSendBackward:
    case OpKind::kRecvBackward: return BusyKind::kSend;
    case OpKind::kEvict:
    case OpKind::kLoad:
    case OpKind::kUnshard:
    case OpKind::kReshard:
    case OpKind::kReduceGrad:
    case OpKind::kNorm:
    case OpKind::kOptimizer:
    case OpKind::kIdle: return BusyKind::kOptimizer;
  }
  return BusyKind::kOptimizer;
}

namespace {

Nanos& at(RankReport& rank, IdleCause cause) {
  return rank.idle_by_cause[static_cast<std::size_t>(cause)];
}
Nanos& at(RankReport& rank, BusyKind kind) {
  return rank.busy_by_kind[static_cast<std::size_t>(kind)];
}

/// The idle time of a rank before one of its instructions.
struct Gap {
  InstructionId before = 0;
  Nanos start = 0;
};

/// What kept a rank waiting in a gap, beside the ops of others.
struct Waited {
  Nanos messages = 0;
  Nanos copies = 0;  ///< of activations out of a memory, or back
  Nanos collectives = 0;
};

/// How much of the gap before an instruction messages and copies were on their way, and collectives
/// ran: those that ended the gap, back to the compute op that let them go, through whatever posts
/// and waits stood between. Before an optimizer step all waiting is for the others, and counts as
/// collective.
Waited explain_gap(const Program& program, const Timeline& timeline, const Holders& holders,
                   const Gap& gap) {
  if (program.instructions[gap.before].op.kind == OpKind::kOptimizer)
    return {0, 0, timeline.start[gap.before] - gap.start};
  Waited waited;
  Nanos until = timeline.start[gap.before];
  std::optional<InstructionId> at = holders.last_dependency(gap.before);
  while (at && timeline.end[*at] > gap.start) {
    const Instruction& instruction = program.instructions[*at];
    const Nanos from = std::max(gap.start, timeline.start[*at]);
    if (is_compute(instruction.op.kind)) break;
    const Nanos overlap = std::max<Nanos>(0, std::min(until, timeline.end[*at]) - from);
    if (is_message(instruction)) waited.messages += overlap;
    if (is_copy(instruction.op.kind)) waited.copies += overlap;
    if (is_collective(instruction.op.kind)) waited.collectives += overlap;
    until = std::min(until, from);
    at = holders.holder(*at);
  }
  return waited;
}

/// A collective that ends behind a rank's last op keeps the rank until then.
void keep_until_collectives_end(const Program& program, const Timeline& timeline,
                                std::vector<RankReport>& ranks) {
  for (InstructionId id = 0; id < program.size(); ++id) {
    const Instruction& instruction = program.instructions[id];
    if (!is_collective(instruction.op.kind) || instruction.role != Role::kWork) continue;
    RankReport& rank = ranks[instruction.rank];
    if (timeline.end[id] <= rank.last_end) continue;
    at(rank, IdleCause::kSync) += timeline.end[id] - rank.last_end;
    rank.last_end = timeline.end[id];
  }
}

void move_imbalance(RankReport& rank, Nanos busiest) {
  const Nanos imbalance = std::min(busiest - rank.busy, at(rank, IdleCause::kDependency));
  at(rank, IdleCause::kDependency) -= imbalance;
  at(rank, IdleCause::kImbalance) += imbalance;
}

}  // namespace

std::vector<RankReport> account_for_time(const Program& program, const Timeline& timeline) {
  const StepBounds bounds = step_bounds(timeline);
  const Holders holders(program, timeline);
  std::vector<RankReport> ranks(program.ranks);
  std::vector<bool> started(program.ranks, false);
  bool has_collectives = false;
  for (RankReport& rank : ranks) rank.first_start = rank.last_end = bounds.start;
  for (InstructionId id = 0; id < program.size(); ++id) {
    const Instruction& instruction = program.instructions[id];
    RankReport& rank = ranks[instruction.rank];
    if (is_message(instruction)) ++rank.sends;
    if (is_collective(instruction.op.kind)) has_collectives = true;
    if (instruction.lane >= static_cast<std::uint32_t>(program.ranks)) continue;
    const Nanos gap = timeline.start[id] - rank.last_end;
    if (!started[instruction.rank]) {
      started[instruction.rank] = true;
      rank.first_start = timeline.start[id];
      const Waited waited = explain_gap(program, timeline, holders, {id, rank.last_end});
      at(rank, IdleCause::kSync) = waited.collectives;
      at(rank, IdleCause::kWarmup) = gap - waited.collectives;
    } else if (gap > 0) {
      const Waited waited = explain_gap(program, timeline, holders, {id, rank.last_end});
      at(rank, IdleCause::kCommunication) += waited.messages;
      at(rank, IdleCause::kMemory) += waited.copies;
      at(rank, IdleCause::kSync) += waited.collectives;
      at(rank, IdleCause::kDependency) +=
          gap - waited.messages - waited.copies - waited.collectives;
    }
    rank.last_end = timeline.end[id];
    const Nanos duration = timeline.end[id] - timeline.start[id];
    rank.busy += duration;
    at(rank, busy_kind(instruction.op.kind)) += duration;
  }
  if (has_collectives) keep_until_collectives_end(program, timeline, ranks);
  Nanos busiest = 0;
  for (const RankReport& rank : ranks) busiest = std::max(busiest, rank.busy);
  for (RankReport& rank : ranks) {
    rank.idle = bounds.end - bounds.start - rank.busy;
    at(rank, IdleCause::kDrain) = bounds.end - rank.last_end;
    move_imbalance(rank, busiest);
  }
  return ranks;
}

}  // namespace bubblescope

// Looks up the turns of a pair's run.
#include "sim/analysis/pair_times.h"

#include <algorithm>
#include <utility>

#include "sim/analysis/idle.h"

namespace bubblescope::inline sim {

namespace {

__extension__ typedef __int128 WideProduct;  ///< of two times

/// Returns time * numerator / denominator, rounded down.
Nanos scale(Nanos time, Nanos numerator, Nanos denominator) {
  if (numerator == denominator || denominator == 0) return time;
  return static_cast<Nanos>(static_cast<WideProduct>(time) * numerator / denominator);
}

Nanos& busy_entry(RankReport& rank, OpKind kind) {
  return rank.busy_by_kind[static_cast<std::size_t>(classify_busy(kind))];
}

}  // namespace

PairTimes::PairTimes(const Program& program, const Timeline& timeline, const PartsReport& parts)
    : program_(program), timeline_(timeline), parts_(parts) {
  for (const PlacedRun& placed : parts.placed)
    if (placed.first != placed.last) pair_of_[placed.first] = pair_of_[placed.last] = &placed;
}

/// Where a rank is slow, turns stretch with their pair.
Nanos PairTimes::first_time(const PlacedRun& placed, Nanos until) const {
  const PartRun& run = parts_.runs[placed.run];
  const Nanos start = timeline_.start[placed.first];
  const Nanos whole = timeline_.end[placed.last] - start;
  return scale(run.first_time(scale(until - start, run.time, whole)), whole, run.time);
}

std::array<KindTime, 2> PairTimes::divide(InstructionId id, Nanos from, Nanos to) const {
  const PlacedRun& placed = *pair_of_.at(id);
  const Nanos first =
      std::clamp(first_time(placed, to) - first_time(placed, from), Nanos{0}, to - from);
  return {KindTime{program_.instructions[placed.first].op.kind, first},
          KindTime{program_.instructions[placed.last].op.kind, to - from - first}};
}

BubbleReport with_parts(BubbleReport report, const Program& program, const Timeline& timeline,
                        PartsReport parts) {
  const PairTimes times(program, timeline, parts);
  for (InstructionId id = 0; id < program.size(); ++id) {
    if (!times.covers(id)) continue;
    const Instruction& instruction = program.instructions[id];
    RankReport& rank = report.ranks[static_cast<std::size_t>(instruction.rank)];
    busy_entry(rank, instruction.op.kind) -= timeline.end[id] - timeline.start[id];
    for (const KindTime& share : times.divide(id)) busy_entry(rank, share.kind) += share.time;
  }
  report.parts = std::move(parts);
  return report;
}

}  // namespace bubblescope::inline sim

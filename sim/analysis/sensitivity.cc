// Runs scenarios in which one thing is slower: first nothing, then every kind, then every rank.
#include "sim/analysis/sensitivity.h"

#include "sim/analysis/idle.h"
#include "sim/engine/simulate_batch.h"

namespace bubblescope::inline sim {

namespace {

constexpr std::size_t kFirstRank = 1 + kBusyKinds;
constexpr double kIncrease = 1.01;

/// Returns by how much a time grows in its scenario.
double increase_of(Nanos time) {
  return to_whole_nanos(static_cast<double>(time) * kIncrease) - static_cast<double>(time);
}

/// An instruction is slower in the scenarios of its kinds and, unless it is a message, of its rank.
Batch scenario_durations(const Instruction& instruction, Nanos duration,
                         std::span<const KindTime> kinds, std::size_t block) {
  Batch durations;
  durations.fill(static_cast<double>(duration));
  const auto slow_in = [&](std::size_t scenario, Nanos time) {
    if (scenario / kBatchWidth == block) durations[scenario % kBatchWidth] += increase_of(time);
  };
  for (const KindTime& kind : kinds)
    slow_in(1 + static_cast<std::size_t>(classify_busy(kind.kind)), kind.time);
  if (!is_message(instruction))
    slow_in(kFirstRank + static_cast<std::size_t>(instruction.rank), duration);
  return durations;
}

/// The makespan if all messages, including their bytes, are 1 % slower.
Nanos makespan_with_slow_messages(const Program& program, Traffic traffic,
                                  std::span<const Nanos> gaps) {
  for (Flow& flow : traffic.flows) {
    flow.load += flow.load / 100;
    Nanos& latency = traffic.fixed[flow.instruction];
    latency = static_cast<Nanos>(to_whole_nanos(static_cast<double>(latency) * kIncrease));
  }
  const auto same = [&](std::size_t) {
    return [&](InstructionId id) {
      Batch durations;
      durations.fill(static_cast<double>(traffic.fixed[id]));
      return durations;
    };
  };
  return simulate_batches(program, traffic, 1, same, {}, gaps)[0];
}

}  // namespace

Sensitivity find_sensitivity(const Program& program, const Timing& timing, const PairTimes* pairs) {
  const std::vector<Nanos>& base = timing.fixed();
  const std::size_t scenarios = kFirstRank + static_cast<std::size_t>(program.ranks);
  const auto batch = [&](std::size_t block) {
    return [&, block](InstructionId id) {
      const Instruction& instruction = program.instructions[id];
      if (pairs != nullptr && pairs->covers(id))
        return scenario_durations(instruction, base[id], pairs->divide(id), block);
      const KindTime kind{instruction.op.kind, base[id]};
      return scenario_durations(instruction, base[id], {&kind, 1}, block);
    };
  };
  const std::vector<Nanos> makespans =
      timing.traffic ? simulate_batches(program, *timing.traffic, scenarios, batch, {}, timing.gaps)
                     : simulate_batches(program, scenarios, batch, timing.gaps);
  Sensitivity sensitivity;
  for (std::size_t kind = 0; kind < kBusyKinds; ++kind)
    sensitivity.by_kind[kind] = makespans[1 + kind] - makespans[0];
  if (timing.traffic)
    sensitivity.by_kind[static_cast<std::size_t>(BusyKind::kSend)] =
        makespan_with_slow_messages(program, *timing.traffic, timing.gaps) - makespans[0];
  for (std::size_t rank = kFirstRank; rank < scenarios; ++rank)
    sensitivity.by_rank.push_back(makespans[rank] - makespans[0]);
  return sensitivity;
}

}  // namespace bubblescope::inline sim

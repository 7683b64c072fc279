// Derives the rules of a policy from a priced Program.
#include "sim/predict/readiness.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <utility>
#include <variant>

#include "sim/analysis/memory_curve.h"
#include "sim/analysis/step_times.h"
#include "sim/engine/ready_run.h"
#include "sim/engine/simulate.h"
#include "sim/engine/simulate_batch.h"
#include "sim/ir/error.h"
#include "sim/predict/choose_lowering.h"
#include "sim/predict/predict.h"

namespace bubblescope::inline sim {

namespace {

/// The lowest number is the best priority.
std::int64_t rank_kind(OpKind kind) {
  if (gives_input_grad(kind) || kind == OpKind::kRecompute) return 0;
  if (kind == OpKind::kForward) return 1;
  return kind == OpKind::kWeightGrad ? 2 : 3;
}

/// A pair counts as the better of its two ops: one with a backward is a backward.
std::vector<std::int64_t> rank_kinds(const Program& program) {
  std::vector<std::int64_t> ranked(program.size(), 0);
  std::vector<InstructionId> first_half(static_cast<std::size_t>(program.ranks), 0);
  for (InstructionId id = 0; id < program.size(); ++id) {
    const Instruction& instruction = program.instructions[id];
    ranked[id] = rank_kind(instruction.op.kind);
    if (instruction.lane >= first_half.size()) continue;
    InstructionId& first = first_half[instruction.lane];
    if (instruction.op.pairing == Pairing::kSecond)
      ranked[first] = std::min(ranked[first], ranked[id]);
    first = id;
  }
  return ranked;
}

std::vector<std::int64_t> find_priorities(const Program& program,
                                          const std::vector<Nanos>& durations,
                                          ReadyPriority policy) {
  std::vector<std::int64_t> priority(program.size(), 0);
  switch (policy) {
    case ReadyPriority::kOrder: break;
    case ReadyPriority::kBackward: priority = rank_kinds(program); break;
    case ReadyPriority::kPath:
      priority = find_remaining_paths(program, durations);
      for (std::int64_t& path : priority) path = -path;
      break;
  }
  return priority;
}

/// Finds the memory that every op adds on its rank: bytes where activations have them, else chunks.
std::vector<std::int64_t> find_memory(const ValidSchedule& schedule, const Program& program,
                                      const Timeline& timeline, const MemoryModel& memory) {
  std::vector<std::int64_t> added(program.size(), 0);
  std::vector<std::int64_t> held(static_cast<std::size_t>(program.ranks), 0);
  for (const MemoryPoint& point : compute_memory_curve(schedule, program, timeline, memory)) {
    const std::int64_t now =
        memory.activation_bytes.empty() ? point.held.chunk_millionths : point.held.bytes;
    std::int64_t& before = held[static_cast<std::size_t>(point.rank)];
    added[point.by] = now - before;
    before = now;
  }
  return added;
}

/// The durations by which ranks choose. A serial reduction and the updates after it follow all
/// ops, whatever their order, and count as nothing.
std::vector<Nanos> find_choice_durations(const ReadyInput& step) {
  std::vector<Nanos> durations = step.durations;
  if (step.update.reduction != GradReduction::kSerial) return durations;
  for (InstructionId id = 0; id < step.program.size(); ++id) {
    const Instruction& instruction = step.program.instructions[id];
    if (!is_compute(instruction.op.kind) && !is_message(instruction)) durations[id] = 0;
  }
  return durations;
}

}  // namespace

void expect_reorderable(const Schedule& schedule, const Config& config) {
  const auto refuse = [&](const std::string& what) {
    throw Error(fmt::format("`policy` ready cannot reorder {}: {}", schedule.name, what));
  };
  if (config.lower.mode != P2pMode::kDataflow)
    refuse("messages are posted in an order of their own; leave `p2p_mode` out");
  if (config.lower.send_budget) refuse("ranks wait for their sends in it; leave `send_budget` out");
  if (!schedule.posted.empty())
    refuse(
        std::string("it says itself where messages and collectives are posted and ranks idle; ") +
        (config.moves.sharding ? "leave `fsdp` out"
                               : "give its order without them, as a list of forwards and "
                                 "backwards alone"));
  if (!schedule.weights.empty()) refuse("its ops read weights of certain versions");
  if (!schedule.offload_target_of_rank.empty()) refuse("its activations are copied out and back");
  if (schedule.fused_forwards > 1) refuse("its forwards are fused");
  const auto* const table = std::get_if<CostTable>(&config.costs);
  if (table != nullptr && !table->replicas.empty())
    refuse("the cost file has replicas, which wait for each other; leave 'replicas' out");
}

ValidSchedule make_hint(ValidSchedule schedule, Overlap overlap) {
  if (overlap != Overlap::kSerial) return schedule;
  Schedule separate = std::move(schedule).take();
  for (RankOrder& order : separate.order)
    for (Op& op : order) op.pairing = Pairing::kAlone;
  return require_valid(std::move(separate));
}

void expect_independent_times(const Timing& timing) {
  if (timing.traffic)
    throw Error(
        "`policy` ready needs ops and messages that do not slow each other; leave `network`, and "
        "'cluster' and 'contended' of a cost file, out");
}

ReadyRules make_ready_rules(const ReadyInput& step, ReadyPriority policy) {
  const std::vector<Nanos> durations = find_choice_durations(step);
  return {find_priorities(step.program, durations, policy),
          find_memory(step.schedule, step.program, simulate(step.program, durations), step.memory)};
}

std::vector<RankOrder> list_run_orders(const Program& program,
                                       const std::vector<std::vector<InstructionId>>& order) {
  std::vector<RankOrder> orders;
  for (const std::vector<InstructionId>& ran : order) {
    RankOrder& ops = orders.emplace_back();
    for (const InstructionId id : ran)
      if (is_compute(program.instructions[id].op.kind)) ops.push_back(program.instructions[id].op);
  }
  return orders;
}

ValidSchedule reorder_schedule(const ValidSchedule& schedule, const Program& program,
                               const std::vector<std::vector<InstructionId>>& order) {
  Schedule reordered = schedule;
  reordered.order = list_run_orders(program, order);
  return require_valid(std::move(reordered));
}

namespace {

StepTimes run_scenarios(const Program& program, const ReadySimulator& simulator,
                        const NoiseModel& noise, std::span<const Nanos> gaps,
                        std::size_t scenarios) {
  std::vector<Nanos> makespans;
  std::vector<Batch> durations(program.size());
  std::vector<Nanos> scenario(program.size());
  while (makespans.size() < scenarios) {
    const std::size_t within = makespans.size() % kBatchWidth;
    if (within == 0) {
      const NoisyBatch batch(noise, makespans.size() / kBatchWidth);
      for (InstructionId id = 0; id < program.size(); ++id) durations[id] = batch(id);
    }
    for (InstructionId id = 0; id < program.size(); ++id)
      scenario[id] = static_cast<Nanos>(durations[id][within]);
    const std::vector<Nanos> ends = simulator.run(scenario, gaps).timeline.end;
    makespans.push_back(ends.empty() ? 0 : *std::max_element(ends.begin(), ends.end()));
  }
  return summarize(std::move(makespans));
}

}  // namespace

ReadyStep run_by_readiness(const ValidSchedule& given, const Config& config) {
  expect_reorderable(given, config);
  const ValidSchedule schedule = make_hint(given, config.lower.overlap);
  Config bare = config;
  bare.policy.reset();
  bare.scenarios = {};
  const LowerOptions lowering = choose_lowering(schedule, config);
  const Prediction fixed = predict(schedule, lower_or_refuse(schedule, lowering), bare);
  expect_independent_times(fixed.timing);
  const std::vector<Nanos>& durations = fixed.timing.durations;
  const ReadyRules rules = make_ready_rules(
      {schedule, fixed.program, durations, fixed.models.memory, lowering.update}, *config.policy);
  const ReadySimulator simulator(fixed.program, rules);
  const std::vector<Nanos>& gaps = fixed.timing.gaps;
  ReadyStep step{reorder_schedule(schedule, fixed.program, simulator.run(durations, gaps).order),
                 {}};
  const Noise& noise = config.scenarios.noise;
  if (noise.is_random())
    step.noise = run_scenarios(
        fixed.program, simulator,
        NoiseModel(fixed.program, durations, noise, price_bytes(fixed.program, fixed.models.costs)),
        gaps, config.scenarios.count);
  return step;
}

}  // namespace bubblescope::inline sim

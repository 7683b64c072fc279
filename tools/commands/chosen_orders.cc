// Finds the orders of a run from its timelines.
#include "tools/commands/chosen_orders.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <utility>
#include <variant>

#include "exec/gpu/host/device_backend.h"
#include "sim/engine/ready_units.h"
#include "sim/ir/counted.h"
#include "sim/ir/error.h"
#include "sim/ir/reorder_ranks.h"
#include "sim/predict/choose_lowering.h"
#include "sim/predict/find_timing.h"
#include "sim/predict/readiness.h"
#include "tools/flags/arrival_options.h"
#include "tools/inputs/inputs.h"

namespace bubblescope::tools {

namespace {

/// A thread learns of another one's end after tens of microseconds where a core is free.
constexpr Nanos kMaxTieWait = 200'000;
/// The part of the shortest op that a rank may wait for other ops.
constexpr Nanos kMinOpParts = 4;

using RankOrders = std::vector<std::vector<InstructionId>>;

/// [rank]: its compute lane in the order of a timeline. The second op of a pair follows the first
/// one. Units that did not run are last.
RankOrders find_orders(const Program& program, const Timeline& timeline) {
  const std::vector<std::int64_t> nothing(program.size(), 0);
  RankOrders orders;
  for (std::vector<ReadyUnit>& units : list_ready_units(program, {nothing, nothing})) {
    std::sort(units.begin(), units.end(), [&](const ReadyUnit& left, const ReadyUnit& right) {
      return std::tuple(timeline.start[left.first], timeline.end[left.first], left.first) <
             std::tuple(timeline.start[right.first], timeline.end[right.first], right.first);
    });
    std::vector<InstructionId>& order = orders.emplace_back();
    for (const ReadyUnit& unit : units) {
      order.push_back(unit.first);
      if (unit.last != unit.first) order.push_back(unit.last);
    }
  }
  return orders;
}

std::int64_t count_moved(const RankOrders& orders) {
  std::int64_t moved = 0;
  for (const std::vector<InstructionId>& order : orders) {
    std::vector<InstructionId> given = order;
    std::sort(given.begin(), given.end());
    for (std::size_t at = 0; at < order.size(); ++at) moved += order[at] == given[at] ? 0 : 1;
  }
  return moved;
}

ChosenOrders compare_orders(const Measurement& measurement, const RankOrders& shown,
                            ReadyPriority policy) {
  ChosenOrders chosen;
  chosen.policy = policy_text(policy);
  for (const std::vector<InstructionId>& order : shown)
    chosen.ops += static_cast<std::int64_t>(order.size());
  chosen.moved = count_moved(shown);
  chosen.steps = static_cast<std::int32_t>(measurement.steps.size());
  for (const Timeline& timeline : measurement.steps)
    chosen.same_steps += find_orders(measurement.step.program, timeline) == shown ? 1 : 0;
  return chosen;
}

void renumber(std::vector<Nanos>& times, const std::vector<InstructionId>& former) {
  std::vector<Nanos> renumbered;
  for (const InstructionId id : former) renumbered.push_back(times[id]);
  times = std::move(renumbered);
}

void renumber(Timeline& timeline, const std::vector<InstructionId>& former) {
  renumber(timeline.start, former);
  renumber(timeline.end, former);
}

Nanos find_tie_wait(const Program& program, const std::vector<Nanos>& durations) {
  Nanos shortest = kMinOpParts * kMaxTieWait;
  for (InstructionId id = 0; id < program.size(); ++id)
    if (is_compute(program.instructions[id].op.kind) && durations[id] > 0)
      shortest = std::min(shortest, durations[id]);
  return std::max<Nanos>(1, shortest / kMinOpParts);
}

}  // namespace

void expect_policy_runs(const Schedule& schedule, const RunContext& context) {
  const std::optional<ReadyPriority> policy = context.inputs.config().policy;
  if (!policy) return;
  if (const auto* const on_device = exec::find_device_backend(context.run.backend))
    throw Error("--policy: the backend " + on_device->name +
                " enqueues whole steps before they run, so that its ranks keep their order; leave "
                "--policy out, or take --backend cpu or mpi");
  if (context.run.work == WorkKind::kTransformer && *policy == ReadyPriority::kPath)
    throw Error(
        "--policy ready:path needs to know how long ops take, and those of --work transformer take "
        "their real time; take ready:order or ready:backward");
  if (!context.run.checkpoints.folder.empty())
    throw Error(
        "--checkpoint: a run that is resumed has the same weights bit for bit only where ranks "
        "keep their order; leave --policy out");
  expect_reorderable(schedule, context.inputs.config());
}

std::optional<exec::ReadyPolicy> make_policy(const TimedStep& step,
                                             const std::vector<Nanos>& durations,
                                             const MemoryModel& memory, const RunContext& context) {
  const Config& config = context.inputs.config();
  if (!config.policy) return std::nullopt;
  if (context.run.work != WorkKind::kTransformer)
    expect_independent_times(find_timing(step.program, step.models));
  const UpdateOptions update = choose_lowering(step.schedule, config).update;
  exec::ReadyPolicy policy{
      make_ready_rules({step.schedule, step.program, durations, memory, update}, *config.policy)};
  if (context.run.work == WorkKind::kSleep)
    policy.tie_wait = find_tie_wait(step.program, durations);
  return policy;
}

void take_chosen_order(Measurement& measurement, ReadyPriority policy) {
  TimedStep& step = measurement.step;
  const RankOrders shown = find_orders(step.program, step.timeline);
  std::variant<ReorderedProgram, Deadlock> reordered = reorder_ranks(step.program, shown);
  auto* const program = std::get_if<ReorderedProgram>(&reordered);
  if (program == nullptr) return;  // a rank did not report what it ran before the step broke down
  if (!measurement.breakdown) measurement.chosen = compare_orders(measurement, shown, policy);
  step.schedule = reorder_schedule(step.schedule, step.program, shown);
  step.program = std::move(program->program);
  renumber(step.timeline, program->former);
  for (Timeline& timeline : measurement.steps) renumber(timeline, program->former);
}

std::string to_string(const ChosenOrders& chosen) {
  return fmt::format(
      "policy {}: {} of {} ran at another place than in their rank's order; {} of {} ran in the "
      "order that is shown\n",
      chosen.policy, chosen.moved, counted(chosen.ops, "op"), chosen.same_steps,
      counted(chosen.steps, "step"));
}

}  // namespace bubblescope::tools

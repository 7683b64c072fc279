// The ends of steps, for every registered schedule over small shapes: they do not change the rest
// of the step, and are timed by the rule of the machine.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <string>
#include <tuple>

#include "sim/analysis/analyze.h"
#include "sim/engine/simulate.h"
#include "sim/ir/shard_stages.h"
#include "sim/model/schedule_def.h"
#include "tests/support/as_written.h"
#include "tests/support/event_loop.h"
#include "tests/support/measured_schedule.h"

namespace bubblescope::inline sim {

/// Used by gtest, which would print the bytes.
static std::ostream& operator<<(std::ostream& out, const ScheduleDef& def) {
  return out << def.name;
}

}  // namespace bubblescope::inline sim

namespace bubblescope::tests {

namespace {

/// Identifies an instruction in any Program of a schedule.
using Key = std::tuple<std::int32_t, OpKind, std::int32_t, std::int32_t, std::int16_t>;
using Spans = std::map<Key, std::pair<Nanos, Nanos>>;

/// The start and end of compute ops and messages.
Spans spans_of(const Program& program, const Timeline& timeline) {
  Spans spans;
  for (InstructionId id = 0; id < program.size(); ++id) {
    const auto& [op, lane, rank, peer, role] = program.instructions[id];
    if (role == Role::kWork && has_microbatch(op.kind))
      spans[{rank, op.kind, op.stage, op.microbatch, op.slice}] = {timeline.start[id],
                                                                   timeline.end[id]};
  }
  return spans;
}

/// All ways to end a step that the schedule accepts.
std::vector<UpdateOptions> updates_of(const Schedule& schedule) {
  if (!schedule.weights.empty())
    return {{OptimizerMode::kLocal, GradReduction::kNone},
            {OptimizerMode::kLocal, GradReduction::kOverlap}};
  std::vector<UpdateOptions> updates;
  for (const Named<OptimizerMode>& optimizer : kOptimizerModes)
    for (const GradReduction reduction :
         {GradReduction::kNone, GradReduction::kOverlap, GradReduction::kSerial})
      updates.push_back({optimizer.choice, reduction});
  std::erase_if(updates, [](const UpdateOptions& update) { return !update.any(); });
  return updates;
}

Program lower_with(const Schedule& schedule, const UpdateOptions& update) {
  LowerOptions options;
  options.update = update;
  return std::get<Program>(lower(schedule, options));
}

/// Schedules that train, in small shapes.
void for_each_schedule(const ScheduleDef& def,
                       const std::function<void(const std::string&, const Schedule&)>& visit) {
  for (const std::int32_t ranks : {1, 2, 3, 4, 6})
    for (const std::int32_t microbatches : {1, 2, 4, 5, 8, 12})
      for (const std::int32_t chunks : {1, 2, 3}) {
        ScheduleRequest request;
        request.shape = {ranks, def.implied_chunks.value_or(chunks), microbatches, 1, {}};
        if (def.implied_chunks && chunks > 1) continue;
        if (def.refuse && !def.refuse(request).empty()) continue;
        const std::string name = def.name + " p=" + std::to_string(ranks) +
                                 " m=" + std::to_string(microbatches) +
                                 " v=" + std::to_string(request.shape.chunks);
        visit(name, build_schedule(def, request));
      }
}

UniformCost costs(Nanos update) {
  UniformCost cost;
  cost.forward = 12;
  cost.input_grad = 18;
  cost.weight_grad = 6;
  cost.message = 1;
  cost.update = {5 * update, 7 * update, 4 * update};
  cost.norm = 3 * update;
  return cost;
}

class EveryUpdate : public testing::TestWithParam<ScheduleDef> {};

TEST_P(EveryUpdate, LeavesTheTimelineAsItIsWhereItTakesNoTime) {
  for_each_schedule(GetParam(), [](const std::string& name, const Schedule& schedule) {
    const CostModel model = spread(costs(0), schedule);
    const Program plain = lower_or_throw(schedule);
    const Timeline expected = simulate(plain, model);
    const Spans spans = spans_of(plain, expected);
    for (const UpdateOptions& update : updates_of(schedule)) {
      const Program program = lower_with(schedule, update);
      const Timeline timeline = simulate(program, model);
      ASSERT_EQ(spans_of(program, timeline), spans) << name;
      if (update.optimizer != OptimizerMode::kPostValidation) {  // its messages take time
        ASSERT_EQ(compute_makespan(timeline), compute_makespan(expected)) << name;
      }
    }
    const Program sharded = lower_or_throw(shard_stages(schedule));
    ASSERT_EQ(spans_of(sharded, simulate(sharded, model)), spans) << name;
  });
}

TEST_P(EveryUpdate, IsTimedAsTheRuleOfTheMachineSays) {
  for_each_schedule(GetParam(), [](const std::string& name, const Schedule& schedule) {
    if (schedule.op_count() > 120) return;
    const CostModel model = spread(costs(1), schedule);
    for (const UpdateOptions& update : updates_of(schedule)) {
      const Program program = lower_with(shard_stages(schedule), update);
      const std::vector<Nanos> durations = price(program, model);
      const Timeline expected = run_by_the_clock(program, durations);
      const Timeline timeline = simulate(program, durations);
      ASSERT_EQ(timeline.start, expected.start) << name;
      ASSERT_EQ(timeline.end, expected.end) << name;
    }
  });
}

TEST_P(EveryUpdate, IsAccountedForToTheNanosecond) {
  for_each_schedule(GetParam(), [](const std::string& name, const Schedule& schedule) {
    const CostModel model = spread(costs(1), schedule);
    for (const UpdateOptions& update : updates_of(schedule)) {
      const Program program = lower_with(schedule, update);
      const BubbleReport report = analyze(schedule, program, simulate(program, model));
      ASSERT_LE(report.lower_bound, report.makespan) << name;
      for (const RankReport& rank : report.ranks) {
        ASSERT_EQ(rank.busy + rank.idle, report.makespan) << name;
        ASSERT_EQ(std::accumulate(rank.idle_by_cause.begin(), rank.idle_by_cause.end(), Nanos{0}),
                  rank.idle)
            << name;
        ASSERT_GE(*std::min_element(rank.idle_by_cause.begin(), rank.idle_by_cause.end()), 0)
            << name;
        const bool steps = rank.busy_by_kind[static_cast<std::size_t>(BusyKind::kOptimizer)] > 0;
        ASSERT_EQ(steps, update.optimizer != OptimizerMode::kNone) << name;
      }
    }
  });
}

/// Schedules whose order needs no search; names of tests cannot have dashes.
std::vector<ScheduleDef> trained_without_search() {
  std::vector<ScheduleDef> defs = Registry<ScheduleDef>::instance().all();
  std::erase_if(defs, [](const ScheduleDef& def) { return def.reads_costs || !def.trains; });
  return defs;
}
std::string test_name(const testing::TestParamInfo<ScheduleDef>& info) {
  std::string name = info.param.name;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Registered, EveryUpdate, testing::ValuesIn(trained_without_search()),
                         test_name);

}  // namespace
}  // namespace bubblescope::tests

// The op gap: the time between two ops of a rank, even if the second is ready.
#include <gtest/gtest.h>

#include <map>
#include <numeric>
#include <string>
#include <tuple>
#include <variant>
#include <vector>

#include "exec/calibration/calibrate.h"
#include "sim/analysis/critical_path.h"
#include "sim/analysis/idle.h"
#include "sim/analysis/lower_bound.h"
#include "sim/analysis/noisy_steps.h"
#include "sim/analysis/sensitivity.h"
#include "sim/engine/ready_run.h"
#include "sim/engine/simulate.h"
#include "sim/ir/lower.h"
#include "sim/model/contention.h"
#include "sim/model/schedule_def.h"
#include "tests/support/as_written.h"
#include "traces/costs/cost_file.h"
#include "traces/costs/cost_file_writer.h"
#include "traces/schedules/text_schedule.h"
#include "traces/timelines/timeline_file.h"

namespace bubblescope::tests {
namespace {

constexpr Nanos kGap = 3;

Schedule build(const char* name, std::int32_t ranks, std::int32_t microbatches) {
  const ScheduleDef& def = find_schedule(name);
  return build_schedule(
      def, {{ranks, def.implied_chunks.value_or(def.default_chunks), microbatches, 1, {}}, {}, {}});
}

CostModel costs_of(const Schedule& schedule, Nanos message, Nanos gap = kGap) {
  UniformCost uniform;
  uniform.forward = 40;
  uniform.input_grad = 44;
  uniform.weight_grad = 36;
  uniform.message = message;
  CostModel costs = spread(uniform, schedule);
  costs.op_gap = gap;
  return costs;
}

Program program_of(const Schedule& schedule) { return std::get<Program>(lower(schedule)); }

Nanos idle(const RankReport& rank, IdleCause cause) {
  return rank.idle_by_cause[static_cast<std::size_t>(cause)];
}

// One rank runs 8 ops without waiting, so there are 7 gaps.
TEST(OpGap, SeparatesTheOpsOfARank) {
  const Schedule schedule = build("1f1b", 1, 4);
  const Program program = program_of(schedule);
  const Timeline timeline = simulate(program, costs_of(schedule, 0));
  EXPECT_EQ(compute_makespan(timeline), 4 * (40 + 44 + 36) + 7 * kGap);
  const BubbleReport report = analyze(schedule, program, timeline);
  EXPECT_EQ(report.ranks[0].busy, 4 * (40 + 44 + 36));
  EXPECT_EQ(idle(report.ranks[0], IdleCause::kLaunch), 7 * kGap);
  EXPECT_EQ(report.ranks[0].idle, 7 * kGap);
}

// Rank 1 runs F0 from 45 to 85. Its B0 takes 80 and follows after the gap, at 88; F1 arrived at 88
// as well. Rank 0 has run F0 and F1 by 83 and waits for B0's message, from 168 to 173, to which no
// gap is added.
TEST(OpGap, AMessageThatArrivesLaterIsNotDelayed) {
  const Schedule schedule = traces::parse_schedule_text("0F0 0F1 0B0 0B1 | 1F0 1B0 1F1 1B1");
  const Program program = program_of(schedule);
  const Timeline timeline = simulate(program, costs_of(schedule, 5));
  std::map<std::string, Nanos> start;
  for (InstructionId id = 0; id < program.size(); ++id)
    start[to_string(program.instructions[id].op)] = timeline.start[id];
  EXPECT_EQ(start["0F1"], 43);
  EXPECT_EQ(start["1F0"], 45);
  EXPECT_EQ(start["1B0"], 88);
  EXPECT_EQ(start["0B0"], 173);
  EXPECT_EQ(start["1F1"], 171);
  const BubbleReport report = analyze(schedule, program, timeline);
  EXPECT_EQ(idle(report.ranks[1], IdleCause::kLaunch), 3 * kGap);
  EXPECT_EQ(idle(report.ranks[0], IdleCause::kCommunication), 5 + 5);
}

TEST(OpGap, CausesStillAddUpToIdleTimeInEverySchedule) {
  for (const char* const name : {"gpipe", "1f1b", "zb-h1", "zb-v", "dualpipev", "interleaved"}) {
    SCOPED_TRACE(name);
    const Schedule schedule = build(name, 4, 8);
    const Program program = program_of(schedule);
    for (const Nanos message : {0, 2, 25}) {
      const Timeline timeline = simulate(program, costs_of(schedule, message));
      const BubbleReport report = analyze(schedule, program, timeline);
      const BubbleReport without =
          analyze(schedule, program, simulate(program, costs_of(schedule, message, 0)));
      std::vector<Nanos> shown(4, 0);
      for (const IdleGap& gap : find_idle_gaps(program, timeline))
        if (gap.cause == IdleCause::kLaunch)
          shown[static_cast<std::size_t>(gap.rank)] += gap.end - gap.start;
      Nanos launches = 0;
      for (std::size_t at = 0; at < 4; ++at) {
        const RankReport& rank = report.ranks[at];
        EXPECT_EQ(rank.busy + rank.idle, report.makespan);
        EXPECT_EQ(std::accumulate(rank.idle_by_cause.begin(), rank.idle_by_cause.end(), Nanos{0}),
                  rank.idle);
        launches += idle(rank, IdleCause::kLaunch);
        EXPECT_EQ(idle(rank, IdleCause::kLaunch), shown[at]);
        EXPECT_EQ(rank.busy, without.ranks[at].busy);
        EXPECT_EQ(idle(without.ranks[at], IdleCause::kLaunch), 0);
      }
      EXPECT_GT(launches, 0);
      EXPECT_GT(report.makespan, without.makespan);
    }
  }
}

// The slack of an op is how much longer it could take: no more, no less.
TEST(OpGap, SlackIsWhatAnOpCouldTakeLonger) {
  for (const char* const name : {"gpipe", "1f1b", "zb-h1", "zb-v", "interleaved"}) {
    SCOPED_TRACE(name);
    const Schedule schedule = build(name, 3, 6);
    const Program program = program_of(schedule);
    for (const Nanos message : {0, 2, 4, 25}) {
      const CostModel costs = costs_of(schedule, message);
      const std::vector<Nanos> gaps = price_gaps(program, costs);
      std::vector<Nanos> durations = price(program, costs);
      const Timeline timeline = simulate(program, durations, gaps);
      const Blockers blockers(program, timeline);
      const std::vector<Nanos> slack = compute_slack(program, timeline, blockers);
      const Nanos makespan = compute_makespan(timeline);
      for (InstructionId id = 0; id < program.size(); ++id) {
        durations[id] += slack[id];
        EXPECT_EQ(compute_makespan(simulate(program, durations, gaps)), makespan) << id;
        ++durations[id];
        EXPECT_GT(compute_makespan(simulate(program, durations, gaps)), makespan) << id;
        durations[id] -= slack[id] + 1;
      }
      for (const InstructionId id : find_critical_path(program, timeline, blockers))
        EXPECT_EQ(slack[id], 0);
    }
  }
}

// Rank 1 runs F0 from 40 to 82 and rests until 85. Rank 0 ends F1 at 83, so that from then on only
// the launch is missing.
TEST(OpGap, ALaunchBeginsWhenTheInputHasArrived) {
  const Schedule schedule = traces::parse_schedule_text("0F0 0F1 0B0 0B1 | 1F0 1F1 1B0 1B1");
  const Program program = program_of(schedule);
  CostModel costs = costs_of(schedule, 0);
  costs.stages[1].forward = 42;
  const Timeline timeline = simulate(program, costs);
  std::vector<std::tuple<Nanos, Nanos>> launches;
  for (const IdleGap& gap : find_idle_gaps(program, timeline))
    if (gap.rank == 1 && gap.cause == IdleCause::kLaunch) launches.emplace_back(gap.start, gap.end);
  ASSERT_FALSE(launches.empty());
  EXPECT_EQ(launches.front(), std::tuple(83, 85));
}

// Both ops of a pair that has its own time start together.
TEST(OpGap, IsNotWithinAPairOfItsOwnTime) {
  const Schedule schedule = build("dualpipev", 2, 8);
  const Program program = std::get<Program>(lower(schedule, {Overlap::kAtomic}));
  CostModel costs = costs_of(schedule, 0);
  for (StageCost& cost : costs.stages) cost.overlapped_pair = 100;
  std::size_t pairs = 0;
  for (const Nanos gap : price_gaps(program, costs)) EXPECT_LE(gap, kGap);
  const Timeline timeline = simulate(program, costs);
  for (InstructionId id = 1; id < program.size(); ++id) {
    if (program.instructions[id].op.pairing != Pairing::kSecond) continue;
    InstructionId first = id - 1;
    while (program.instructions[first].op.pairing != Pairing::kFirst ||
           program.instructions[first].rank != program.instructions[id].rank)
      --first;
    EXPECT_EQ(timeline.end[id] - timeline.start[first], 100);
    ++pairs;
  }
  EXPECT_GT(pairs, 0U);
}

// The gaps of a rank add up in every order of its ops.
TEST(OpGap, IsInTheLowerBound) {
  const Schedule alone = build("1f1b", 1, 4);
  const Program program = program_of(alone);
  const Timeline timeline = simulate(program, costs_of(alone, 0));
  EXPECT_EQ(lower_bound(program, timeline), compute_makespan(timeline));
  for (const char* const name : {"gpipe", "1f1b", "zb-h1", "zb-v", "interleaved", "dualpipev"}) {
    SCOPED_TRACE(name);
    const Schedule schedule = build(name, 4, 8);
    const Program many = program_of(schedule);
    const Timeline with = simulate(many, costs_of(schedule, 7));
    EXPECT_LE(lower_bound(many, with), compute_makespan(with));
    EXPECT_GE(lower_bound(many, with), lower_bound(many, simulate(many, costs_of(schedule, 7, 0))));
  }
}

// A device whose ranks do not slow each other, scenarios without noise, and ranks that prefer their
// own order.
TEST(OpGap, AllEnginesAgree) {
  for (const char* const name : {"gpipe", "1f1b", "zb-h1", "zb-v", "interleaved"}) {
    SCOPED_TRACE(name);
    const Schedule schedule = build(name, 4, 8);
    const Program program = program_of(schedule);
    const CostModel costs = costs_of(schedule, 7);
    const Timeline expected = simulate(program, costs);
    Contention none{4, {}};
    none.stages.resize(static_cast<std::size_t>(schedule.stages()));
    Timing timing = make_timing(program, price(program, costs), {}, none);
    timing.gaps = price_gaps(program, costs);
    EXPECT_EQ(simulate(program, timing).timeline.end, expected.end);
    EXPECT_EQ(simulate_noise(program, timing, costs, {}, 2).longest, compute_makespan(expected));
    timing.traffic.reset();
    EXPECT_EQ(simulate(program, timing).timeline.end, expected.end);
    EXPECT_EQ(simulate_noise(program, timing, costs, {}, 2).longest, compute_makespan(expected));
  }
  const Schedule alone = build("1f1b", 1, 6);
  const Program program = program_of(alone);
  const CostModel costs = costs_of(alone, 0);
  ReadyRules rules;
  rules.memory.assign(program.size(), 0);
  for (InstructionId id = 0; id < program.size(); ++id) rules.priority.push_back(id);
  const ReadySimulator ready(program, rules);
  EXPECT_EQ(ready.run(price(program, costs), price_gaps(program, costs)).timeline.end,
            simulate(program, costs).end);
}

TEST(OpGap, IsFoundByCalibrationAndIsNoPartOfAnOp) {
  const Schedule schedule = build("zb-h1", 3, 6);
  const Program program = program_of(schedule);
  const std::vector<Timeline> steps{simulate(program, costs_of(schedule, 70))};
  const exec::Observation observation{program, steps};
  const exec::Calibration calibration = exec::calibrate({&observation, 1}, 3);
  EXPECT_EQ(calibration.op_gap->mean, kGap);
  EXPECT_EQ(calibration.op_gap->half_width, 0);
  EXPECT_EQ(calibration.message->mean, 70);
  EXPECT_EQ(calibration.ops[1][static_cast<std::size_t>(OpKind::kForward)]->mean, 40);
}

TEST(OpGap, IsAKeyOfTheCostFile) {
  const CostTable table = traces::parse_cost_file(
      R"({"format": "bubblescope-costs/1", "stages": [{"forward": 1, "backward": 2}],
          "op_gap": "3us"})",
      "costs.json");
  EXPECT_EQ(table.op_gap, 3000);
  const std::string written = traces::write_cost_file(table, {});
  EXPECT_EQ(traces::parse_cost_file(written, "again.json").op_gap, 3000);
  const Schedule schedule = build("gpipe", 1, 2);
  EXPECT_EQ(make_cost_model(table, schedule).op_gap, 3000);
}

// A profiler does not record all that an op waits for, so a later start is not a launch.
TEST(OpGap, IsNotKnownOfImportedSteps) {
  const Schedule schedule = build("1f1b", 2, 4);
  const Program program = program_of(schedule);
  Timeline timeline = simulate(program, costs_of(schedule, 0));
  timeline.is_imported = true;
  const BubbleReport report = analyze(schedule, program, timeline);
  EXPECT_EQ(idle(report.ranks[1], IdleCause::kLaunch), 0);
  EXPECT_EQ(choose_idle_causes(report).back(), IdleCause::kSync);
  const std::string saved = traces::write_timeline(require_valid(schedule), program, timeline);
  EXPECT_TRUE(traces::parse_timeline(saved, "saved.json").timeline.is_imported);
}

}  // namespace
}  // namespace bubblescope::tests

// Contention by what runs beside what: how the simulator applies the weights of pairs of kinds, how
// calibration finds them, and how cost files state them.
#include "exec/calibration/kind_contention.h"

#include <gtest/gtest.h>

#include <string>
#include <variant>

#include "sim/engine/simulate.h"
#include "sim/engine/simulate_shared.h"
#include "sim/ir/error.h"
#include "sim/ir/lower.h"
#include "sim/model/contention.h"
#include "sim/model/schedule_def.h"
#include "sim/model/stage_values.h"
#include "tests/support/as_written.h"
#include "tests/support/error_text.h"
#include "traces/costs/cost_file.h"
#include "traces/costs/cost_file_writer.h"

namespace bubblescope::tests {
namespace {

constexpr auto kF = static_cast<std::size_t>(OpKind::kForward);
constexpr auto kB = static_cast<std::size_t>(OpKind::kBackward);
constexpr auto kI = static_cast<std::size_t>(OpKind::kInputGrad);
constexpr auto kW = static_cast<std::size_t>(OpKind::kWeightGrad);

Contention slowed(std::size_t stages, std::int32_t ranks, const Slowdown& slowdown) {
  Contention contention;
  contention.ranks_per_device = ranks;
  contention.stages.resize(stages);
  for (auto& kinds : contention.stages) kinds.fill(slowdown);
  return contention;
}

Timeline run(const Program& program, const std::vector<Nanos>& alone, const Contention& contention,
             std::span<const Nanos> gaps = {}) {
  Traffic traffic;
  traffic.fixed = alone;
  return simulate_shared(program, with_contention(std::move(traffic), program, contention), gaps)
      .timeline;
}

/// One independent op per rank.
Program ops_apart(const std::vector<OpKind>& kinds) {
  Program program;
  program.ranks = static_cast<std::int32_t>(kinds.size());
  program.dependency_begin.assign(kinds.size() + 1, 0);
  for (std::int32_t rank = 0; rank < program.ranks; ++rank) {
    Op op = forward(rank, 0);
    op.kind = kinds[static_cast<std::size_t>(rank)];
    program.lanes.push_back({rank, "compute"});
    program.instructions.push_back({op, static_cast<std::uint32_t>(rank), rank, rank});
  }
  return program;
}

// Beside others, ops take 1.8 times as long. A weight of 1.25 makes that twice as long, and a
// weight of 0 leaves the weight gradient alone.
TEST(KindContention, AWeightScalesTheSlowdownBesideItsKind) {
  Contention contention = slowed(2, 2, {1.8});
  contention.kind_weights = equal_kind_weights();
  (*contention.kind_weights)[kF][kW] = 1.25;
  (*contention.kind_weights)[kW][kF] = 0;
  const Program program = ops_apart({OpKind::kForward, OpKind::kWeightGrad});
  EXPECT_EQ(run(program, {100, 1000}, contention).end, (std::vector<Nanos>{200, 1000}));
}

// Three ranks: the forward is slowed by the mean of its weights beside W and I, (2 + 0.5) / 2,
// times 60 %: 1.75 times as long.
TEST(KindContention, WeightsOfSeveralOpsAreAveraged) {
  Contention contention = slowed(3, 3, {1.4, 1.6});
  contention.kind_weights = equal_kind_weights();
  (*contention.kind_weights)[kF][kW] = 2;
  (*contention.kind_weights)[kF][kI] = 0.5;
  const Program program = ops_apart({OpKind::kForward, OpKind::kWeightGrad, OpKind::kInputGrad});
  EXPECT_EQ(run(program, {100, 10'000, 10'000}, contention).end[0], 175);
}

struct Lowered {
  Schedule schedule;
  Program program;
  std::vector<Nanos> durations;
};

Lowered lower_schedule(const char* name) {
  Lowered made{build_schedule(find_schedule(name), {{4, 1, 12, 1, {}}, {}, {}}), {}, {}};
  made.program = std::get<Program>(lower(made.schedule));
  for (const Instruction& instruction : made.program.instructions)
    made.durations.push_back(is_compute(instruction.op.kind)
                                 ? 100'000 + 9'000 * instruction.op.stage +
                                       17'000 * static_cast<Nanos>(instruction.op.kind)
                                 : 2'000);
  return made;
}

TEST(KindContention, EqualWeightsChangeNothing) {
  for (const char* const name : {"gpipe", "1f1b", "zb-h1", "zb-h2"}) {
    const Lowered step = lower_schedule(name);
    Contention contention = slowed(4, 4, {1.1, 1.3, 1.35});
    const Timeline plain = run(step.program, step.durations, contention);
    contention.kind_weights = equal_kind_weights();
    EXPECT_EQ(run(step.program, step.durations, contention).end, plain.end) << name;
  }
}

/// The durations by which the samples of a step were made.
exec::ContendedTimes times_of(const Slowdown& slowdown) {
  exec::ContendedTimes times(4);
  for (std::int32_t stage = 0; stage < 4; ++stage)
    for (std::size_t kind = 0; kind < kComputeKinds; ++kind) {
      const Nanos alone = 100'000 + 9'000 * stage + 17'000 * static_cast<Nanos>(kind);
      auto& of_kind = times[static_cast<std::size_t>(stage)][kind];
      of_kind.push_back(alone);
      for (const double factor : slowdown)
        of_kind.push_back(static_cast<Nanos>(factor * static_cast<double>(alone)));
    }
  return times;
}

TEST(KindContention, CalibrationFindsTheWeightsOfADevice) {
  const Slowdown slowdown{1.2, 1.35, 1.5};
  Contention device = slowed(4, 4, slowdown);
  device.kind_weights = equal_kind_weights();
  (*device.kind_weights)[kF][kW] = 1.6;
  (*device.kind_weights)[kF][kB] = 0.7;
  (*device.kind_weights)[kI][kF] = 1.3;
  (*device.kind_weights)[kW][kW] = 0.4;
  (*device.kind_weights)[kB][kF] = 0.8;
  std::vector<Lowered> steps;
  for (const char* const name : {"1f1b", "zb-h1", "gpipe", "zb-h2"})
    steps.push_back(lower_schedule(name));
  std::vector<std::vector<Timeline>> timelines;
  for (const Lowered& step : steps) {
    const std::vector<Nanos> gaps(step.program.size(), 500);
    timelines.push_back({run(step.program, step.durations, device, gaps)});
  }
  std::vector<exec::Observation> observations;
  for (std::size_t at = 0; at < steps.size(); ++at)
    observations.push_back({steps[at].program, timelines[at]});
  const auto found = exec::fit_kind_weights(observations, times_of(slowdown), 4);
  ASSERT_TRUE(found);
  const auto expect = [&](std::size_t kind, std::size_t beside) {
    EXPECT_NEAR((*found)[kind][beside], (*device.kind_weights)[kind][beside], 0.05)
        << kCostKeys[kind] << " beside " << kCostKeys[beside];
  };
  expect(kF, kF);
  expect(kF, kW);
  expect(kF, kB);
  expect(kI, kF);
  expect(kI, kW);
  expect(kW, kW);
  expect(kW, kF);
  expect(kB, kF);
  expect(kB, kB);
  // Schedules with full backwards and with split ones never ran side by side.
  EXPECT_EQ((*found)[kB][kW], 1);
}

TEST(KindContention, NothingIsFittedWhereNothingIsSlowed) {
  const Lowered step = lower_schedule("1f1b");
  const std::vector<Timeline> timelines{simulate(step.program, step.durations)};
  const exec::Observation observation{step.program, timelines};
  EXPECT_FALSE(exec::fit_kind_weights({&observation, 1}, times_of({1, 1, 1}), 4));
}

std::string with_entries(const std::string& entries) {
  return R"({"format":"bubblescope-costs/1","ranks_per_device":2,"stages":[{"forward":"10us",)"
         R"("backward":"20us","contended":{"forward":["12us"]}}],"kind_contention":[)" +
         entries + "]}";
}

TEST(KindContention, CostFilesStateIt) {
  const CostTable table = traces::parse_cost_file(
      with_entries(R"({"kind":"forward","beside":"backward","weight":1.25})"), "f.json");
  ASSERT_TRUE(table.kind_weights);
  EXPECT_EQ((*table.kind_weights)[kF][kB], 1.25);
  EXPECT_EQ((*table.kind_weights)[kB][kF], 1);
  EXPECT_EQ(*traces::parse_cost_file(traces::write_cost_file(table, {}), "g.json").kind_weights,
            *table.kind_weights);
}

TEST(KindContention, EntriesThatMeanNothingAreRefused) {
  const auto error = [](const std::string& entries) {
    return error_of([&] { traces::parse_cost_file(with_entries(entries), "f.json"); });
  };
  EXPECT_EQ(error(R"({"kind":"fwd","beside":"backward","weight":1})"),
            "f.json: /kind_contention/0/kind: is not a kind of op; write forward, backward, "
            "input_grad, weight_grad or recompute");
  EXPECT_EQ(error(R"({"kind":"forward","beside":"backward","weight":-1})"),
            "f.json: /kind_contention/0/weight: must be a number from 0 to 100: how many times as "
            "much the op is slowed");
  EXPECT_EQ(
      error(R"({"kind":"forward","beside":"backward","weight":1},)"
            R"({"kind":"forward","beside":"backward","weight":2})"),
      "f.json: /kind_contention/1: has a weight above for the same kinds; remove one of them");
}

}  // namespace
}  // namespace bubblescope::tests

// Costs under contention: a device whose ranks slow each other by a known law is measured, and the
// measured costs predict what the device then does.
#include "exec/calibration/contention_costs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <variant>

#include "exec/calibration/contention_program.h"
#include "exec/gpu/host/gpu_job.h"
#include "exec/runtime/execute.h"
#include "sim/engine/simulate_shared.h"
#include "sim/ir/lower.h"
#include "sim/ir/recompute.h"
#include "sim/model/contention.h"
#include "sim/model/schedule_def.h"
#include "tests/support/as_written.h"
#include "tests/support/fake_gpu.h"

namespace bubblescope::tests {
namespace {

const SlowdownLaw kLaw{1.1, 1.25, 1.5};

Schedule build(const std::string& name, std::int32_t chunks, std::int32_t microbatches) {
  return build_schedule(find_schedule(name), {{4, chunks, microbatches, 1, {}}, {}, {}});
}

/// Every stage and kind of op has another duration.
std::vector<Nanos> durations_of(const Program& program) {
  std::vector<Nanos> durations;
  for (const Instruction& instruction : program.instructions) {
    const Op& op = instruction.op;
    const Nanos unit = 100'000 + 7'000 * op.stage;
    durations.push_back(is_compute(op.kind)       ? unit * (1 + static_cast<Nanos>(op.kind))
                        : is_message(instruction) ? 3'000
                                                  : 0);
  }
  return durations;
}

std::vector<Timeline> run(const Schedule& schedule, const Program& program, bool graph = false) {
  exec::DeviceOptions device;
  device.graph = graph;
  const ValidSchedule valid = require_valid(schedule);
  const exec::JobRequest request{
      valid, program, nullptr, durations_of(program), exec::WaitMode::kSpin, device};
  const exec::Job job = exec::start_gpu_job(fake_gpu_calls(), request, {});
  return exec::execute(program, *job.backend, "cuda", {1, 2, {}}).steps;
}

exec::ContentionCosts measure(const Schedule& schedule, std::int32_t ranks_per_device) {
  const Program program = exec::contention_program(schedule, ranks_per_device);
  const std::vector<Timeline> steps = run(schedule, program);
  const exec::Observation observation{program, steps};
  return exec::find_contention_costs({&observation, 1}, {schedule.stages(), ranks_per_device});
}

Contention contention_of(const exec::ContentionCosts& costs, std::int32_t ranks_per_device) {
  Contention contention{ranks_per_device, {}};
  for (const auto& kinds : costs) {
    auto& slowdowns = contention.stages.emplace_back();
    for (std::size_t kind = 0; kind < kinds.size(); ++kind) {
      const std::vector<Nanos> times = exec::fill_contention(kinds[kind]);
      for (std::size_t at = 1; at < times.size(); ++at)
        slowdowns[kind].push_back(static_cast<double>(times[at]) / static_cast<double>(times[0]));
    }
  }
  return contention;
}

TEST(ContentionCosts, FindTheLawOfTheDevice) {
  reset_fake_gpu(1).times.gemms = kLaw;
  const Schedule schedule = build("interleaved", 2, 8);
  const exec::ContentionCosts costs = measure(schedule, 4);
  for (std::int32_t stage = 0; stage < schedule.stages(); ++stage)
    for (const OpKind kind :
         {OpKind::kForward, OpKind::kBackward, OpKind::kInputGrad, OpKind::kWeightGrad}) {
      const std::vector<Nanos> times = exec::fill_contention(
          costs[static_cast<std::size_t>(stage)][static_cast<std::size_t>(kind)]);
      ASSERT_EQ(times.size(), 4u);
      const Nanos alone = (100'000 + 7'000 * stage) * (1 + static_cast<Nanos>(kind));
      // Another rank may become busy for a moment of an op that counts as uncontended.
      EXPECT_NEAR(static_cast<double>(times[0]), static_cast<double>(alone),
                  0.005 * static_cast<double>(alone));
      for (std::size_t busy = 2; busy <= 4; ++busy) {
        const double expected = kLaw[busy - 2] * static_cast<double>(alone);
        // Ranks that become busy or idle within an op change its mean number of busy ranks by up to
        // a quarter.
        EXPECT_NEAR(static_cast<double>(times[busy - 1]), expected, 0.03 * expected)
            << "stage " << stage << ", " << busy << " busy";
      }
    }
}

TEST(ContentionCosts, PredictOtherSchedulesOnThatDevice) {
  reset_fake_gpu(1).times.gemms = kLaw;
  const exec::ContentionCosts costs = measure(build("1f1b", 1, 8), 4);
  for (const char* name : {"gpipe", "1f1b", "zb-h1", "zb-h2", "eager-1f1b"})
    for (const std::int32_t microbatches : {4, 12}) {
      SCOPED_TRACE(name);
      const Schedule schedule = build(name, 1, microbatches);
      const Program program = std::get<Program>(lower(schedule));
      Traffic traffic;
      traffic.fixed = durations_of(program);
      traffic = with_contention(std::move(traffic), program, contention_of(costs, 4));
      const auto predicted =
          static_cast<double>(compute_makespan(simulate_shared(program, traffic).timeline));
      for (const Timeline& step : run(schedule, program, microbatches == 12))
        EXPECT_NEAR(static_cast<double>(compute_makespan(step)), predicted, 0.01 * predicted);
    }
}

// A stage without recomputation has no R; with recomputation, an R follows every forward.
TEST(ContentionCosts, TurnsRecomputeOnlyIfTheScheduleDoes) {
  const auto count = [](const Schedule& schedule, OpKind kind) {
    const Program program = exec::contention_program(schedule, 4);
    return std::count_if(program.instructions.begin(), program.instructions.end(),
                         [&](const Instruction& each) { return each.op.kind == kind; });
  };
  const Schedule plain = build("1f1b", 1, 8);
  EXPECT_EQ(count(plain, OpKind::kRecompute), 0);
  const Schedule again = with_recompute(plain, {Recompute::kFull});
  EXPECT_EQ(count(again, OpKind::kRecompute), count(again, OpKind::kForward));
  // There are 4, 2, 2 and 1 turns of 1, 2, 3 and 4 busy ranks, with 18 ranks in all; each has three
  // rounds of two forwards.
  EXPECT_EQ(count(plain, OpKind::kForward), 18 * 3 * 2);
}

// With two devices of two ranks, at most two are busy.
TEST(ContentionCosts, DevicesAreMeasuredSideBySide) {
  reset_fake_gpu(2).times.gemms = kLaw;
  const exec::ContentionCosts costs = measure(build("1f1b", 1, 8), 2);
  const auto& forwards = costs[3][static_cast<std::size_t>(OpKind::kForward)];
  ASSERT_EQ(forwards.size(), 2u);
  EXPECT_EQ(forwards[0]->mean, 121'000);
  EXPECT_NEAR(static_cast<double>(forwards[1]->mean), 1.1 * 121'000, 0.03 * 121'000);
}

TEST(ContentionCosts, AreFilledByALineWhereNothingWasSeen) {
  const auto seen = [](Nanos mean) { return exec::Estimate{mean, 0, 0, 1}; };
  EXPECT_EQ(exec::fill_contention({seen(10), {}, {}, seen(16), {}}),
            (std::vector<Nanos>{10, 12, 14, 16, 16}));
  EXPECT_EQ(exec::fill_contention({{}, seen(10)}), (std::vector<Nanos>{10, 10}));
  EXPECT_EQ(exec::fill_contention({seen(10), seen(9)}), (std::vector<Nanos>{10, 10}));
  EXPECT_TRUE(exec::fill_contention({{}, {}}).empty());
}

}  // namespace
}  // namespace bubblescope::tests

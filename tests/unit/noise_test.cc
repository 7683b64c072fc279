// Noise is the same on every machine and has the claimed distributions.
#include "sim/model/noise.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "sim/analysis/sensitivity.h"
#include "sim/analysis/step_times.h"
#include "sim/engine/simulate.h"
#include "sim/engine/simulate_batch.h"
#include "sim/ir/error.h"
#include "sim/ir/lower.h"
#include "sim/model/random.h"
#include "tests/support/as_written.h"
#include "tests/support/error_text.h"
#include "traces/schedules/text_schedule.h"

namespace bubblescope::tests {
namespace {

constexpr const char* kTwoRanks = "0F0 0F1 0B0 0B1 | 1F0 1B0 1F1 1B1";

struct Case {
  Program program;
  std::vector<Nanos> durations;
};

/// Ops of 1 and 2 ms, messages of 0.1 ms.
Case two_ranks() {
  const Schedule schedule = traces::parse_schedule_text(kTwoRanks);
  UniformCost cost;
  cost.message = 100'000;
  Case made{std::get<Program>(lower(schedule)), {}};
  made.durations = price(made.program, spread(cost, schedule));
  return made;
}

std::vector<Nanos> makespans(const Case& made, const Noise& noise, std::size_t scenarios) {
  const NoiseModel model(made.program, made.durations, noise);
  return simulate_batches(made.program, scenarios,
                          [&](std::size_t block) { return NoisyBatch(model, block); });
}

/// The duration of the first op in many scenarios, relative to its cost.
std::vector<double> factors_of_first_op(const Noise& noise) {
  const Case made = two_ranks();
  const NoiseModel model(made.program, made.durations, noise);
  std::vector<double> factors;
  for (std::size_t block = 0; block < 2000; ++block)
    for (const double duration : NoisyBatch(model, block)(0))
      factors.push_back(duration / static_cast<double>(made.durations[0]));
  return factors;
}

double mean_of(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

double deviation_of(const std::vector<double>& values) {
  const double mean = mean_of(values);
  double sum = 0;
  for (const double value : values) sum += (value - mean) * (value - mean);
  return std::sqrt(sum / static_cast<double>(values.size()));
}

// The first outputs of SplitMix64 from the state 1234567, by its authors' code.
TEST(Random, IsSplitMix64) {
  EXPECT_EQ(draw(1234567, 0), 6457827717110365317u);
  EXPECT_EQ(draw(1234567, 1), 3203168211198807973u);
  EXPECT_EQ(draw(1234567, 2), 9817491932198370423u);
}

// The mean of 32 000 draws with sigma 10 % is within 4 x 0.1 / sqrt(32 000) = 0.0023 of 1. The
// median of a lognormal with mean 1 is exp(-sigma^2 / 2) = 0.995; its 95th percentile is
// 0.995 exp(1.645 sigma) = 1.173, a gaussian's 1.164.
TEST(Noise, JitterHasItsMeanAndSigma) {
  Noise noise;
  noise.op_jitter = 0.1;
  std::vector<double> lognormal = factors_of_first_op(noise);
  noise.distribution = Distribution::kGaussian;
  std::vector<double> gaussian = factors_of_first_op(noise);
  EXPECT_NEAR(mean_of(lognormal), 1, 0.0023);
  EXPECT_NEAR(mean_of(gaussian), 1, 0.0023);
  EXPECT_NEAR(deviation_of(lognormal), std::sqrt(std::exp(0.01) - 1), 0.002);
  EXPECT_NEAR(deviation_of(gaussian), 0.1, 0.002);
  std::sort(lognormal.begin(), lognormal.end());
  std::sort(gaussian.begin(), gaussian.end());
  EXPECT_NEAR(lognormal[16'000], 0.995, 0.003);
  EXPECT_NEAR(lognormal[30'400], 1.173, 0.006);
  EXPECT_NEAR(gaussian[30'400], 1.164, 0.006);
}

// A gaussian of sigma 1 would be negative in every sixth draw.
TEST(Noise, NoDurationIsNegative) {
  Noise noise;
  noise.op_jitter = 1;
  noise.distribution = Distribution::kGaussian;
  const std::vector<double> factors = factors_of_first_op(noise);
  EXPECT_EQ(*std::min_element(factors.begin(), factors.end()), 0);
}

// 32 000 draws at 1 %: 320, within four times sqrt(320 x 0.99).
TEST(Noise, StragglersComeWithTheirProbability) {
  Noise noise;
  noise.stragglers = {0.01, 3};
  const std::vector<double> factors = factors_of_first_op(noise);
  const auto slow = std::count(factors.begin(), factors.end(), 3);
  EXPECT_EQ(slow + std::count(factors.begin(), factors.end(), 1), 32'000);
  EXPECT_NEAR(static_cast<double>(slow), 320, 72);
}

TEST(Noise, OpsOfOneRankOrOneMicrobatchAreSlowTogether) {
  const Case made = two_ranks();
  Noise noise;
  noise.rank_jitter = 0.1;
  const NoiseModel by_rank(made.program, made.durations, noise);
  noise.rank_jitter = 0;
  noise.sequence_length_jitter = 0.1;
  const NoiseModel by_length(made.program, made.durations, noise);
  const auto factor = [&](const NoiseModel& model, InstructionId id) {
    return NoisyBatch(model, 0)(id)[3] / static_cast<double>(made.durations[id]);
  };
  for (InstructionId left = 0; left < made.program.size(); ++left)
    for (InstructionId right = 0; right < made.program.size(); ++right) {
      const Instruction& first = made.program.instructions[left];
      const Instruction& second = made.program.instructions[right];
      if (is_message(first) || is_message(second)) continue;
      const double rank_gap = factor(by_rank, left) - factor(by_rank, right);
      EXPECT_EQ(std::abs(rank_gap) < 1e-5, first.rank == second.rank);
      const double length_gap = factor(by_length, left) - factor(by_length, right);
      EXPECT_EQ(std::abs(length_gap) < 1e-5, first.op.microbatch == second.op.microbatch);
    }
}

// A message of 1 ms, of which its bytes take 0.75, takes 0.25 ms + 0.75 ms times its micro-batch's
// length; without bytes its duration is constant.
TEST(Noise, ScalesTheBytesOfMessagesAndNotTheirLatency) {
  const Case made = two_ranks();
  std::vector<Nanos> bytes(made.program.size(), 0);
  InstructionId message = 0;
  while (!is_message(made.program.instructions[message])) ++message;
  bytes[message] = made.durations[message] * 3 / 4;
  Noise noise;
  noise.sequence_length_jitter = 0.3;
  const NoiseModel model(made.program, made.durations, noise, bytes);
  const NoiseModel latency_alone(made.program, made.durations, noise);
  const auto whole = static_cast<double>(made.durations[message]);
  const NoisyBatch batch(model, 0);
  for (std::size_t at = 0; at < kBatchWidth; ++at) {
    EXPECT_NEAR(batch(message)[at], whole / 4 + whole * 3 / 4 * batch.length(message)[at], 1);
    EXPECT_EQ(NoisyBatch(latency_alone, 0)(message)[at], whole);
  }
  EXPECT_NE(batch.length(message)[0], batch.length(message)[1]);
}

TEST(Noise, ScenariosDoNotDependOnHowManyThereAre) {
  const Case made = two_ranks();
  Noise noise;
  noise.op_jitter = 0.05;
  noise.stragglers = {0.1, 2, true};
  const std::vector<Nanos> many = makespans(made, noise, 100);
  for (const std::size_t count : {1u, 15u, 16u, 17u, 99u})
    EXPECT_EQ(makespans(made, noise, count),
              std::vector<Nanos>(many.begin(), many.begin() + static_cast<std::ptrdiff_t>(count)));
  noise.seed = 2;
  EXPECT_NE(makespans(made, noise, 100), many);
}

// Pinned values: the same on every machine, whatever its math library rounds.
TEST(Noise, IsTheSameOnEveryMachine) {
  Noise noise;
  noise.op_jitter = 0.05;
  noise.message_jitter = 0.2;
  noise.rank_jitter = 0.03;
  noise.sequence_length_jitter = 0.2;
  noise.stragglers = {0.2, 3};
  EXPECT_EQ(makespans(two_ranks(), noise, 4),
            (std::vector<Nanos>{12'698'243, 15'849'688, 9'755'404, 20'174'043}));
}

// A draw belongs to the op, wherever it is in the order: with the same noise every op of two orders
// takes the same time.
TEST(Noise, BelongsToTheOpAndNotToItsPosition) {
  const Schedule one = traces::parse_schedule_text(kTwoRanks);
  const Schedule other = traces::parse_schedule_text("0F1 0F0 0B1 0B0 | 1F1 1B1 1F0 1B0");
  const Program first = std::get<Program>(lower(one));
  const Program second = std::get<Program>(lower(other));
  const std::vector<Nanos> same(first.size(), 1'000'000);
  Noise noise;
  noise.op_jitter = noise.message_jitter = 0.1;
  const NoiseModel model(first, same, noise);
  const NoiseModel other_model(second, same, noise);
  for (InstructionId left = 0; left < first.size(); ++left)
    for (InstructionId right = 0; right < second.size(); ++right) {
      if (first.instructions[left].op != second.instructions[right].op) continue;
      EXPECT_EQ(NoisyBatch(model, 0)(left), NoisyBatch(other_model, 0)(right));
    }
}

TEST(Noise, SlowRanksAreSlowInEveryStep) {
  const Case made = two_ranks();
  const std::vector<Nanos> slow = apply_slow_ranks(made.program, made.durations, {{1, 1.2}});
  for (InstructionId id = 0; id < made.program.size(); ++id) {
    const Instruction& instruction = made.program.instructions[id];
    const bool stretched = instruction.rank == 1 && !is_message(instruction);
    EXPECT_EQ(slow[id] * 10, made.durations[id] * (stretched ? 12 : 10));
  }
  EXPECT_EQ(error_of([&] {
              apply_slow_ranks(made.program, made.durations, {{2, 1.2}});
            }),
            "rank 2 is slow, but ranks are 0..1; correct `slow`");
}

TEST(Noise, RefusesStepsThatDoNotFit) {
  Case made = two_ranks();
  made.durations[0] = Nanos{1} << 52;
  EXPECT_EQ(error_of([&] { NoiseModel(made.program, made.durations, Noise{}); }),
            "with this noise a step might take over 26 days; use less noise or fewer ops");
}

TEST(Batch, IsTheDataflowPassInEveryScenario) {
  const Case made = two_ranks();
  const auto duration = [&](InstructionId id, std::size_t scenario) {
    return made.durations[id] + static_cast<Nanos>((id * 7919 + scenario * 104729) % 999'983);
  };
  const std::vector<Nanos> found =
      simulate_batches(made.program, 40, [&](std::size_t block) -> BatchDurations {
        return [&, block](InstructionId id) {
          Batch durations;
          for (std::size_t at = 0; at < kBatchWidth; ++at)
            durations[at] = static_cast<double>(duration(id, block * kBatchWidth + at));
          return durations;
        };
      });
  ASSERT_EQ(found.size(), 40u);
  for (std::size_t scenario = 0; scenario < found.size(); ++scenario) {
    std::vector<Nanos> durations;
    for (InstructionId id = 0; id < made.program.size(); ++id)
      durations.push_back(duration(id, scenario));
    const Timeline timeline = simulate(made.program, durations);
    EXPECT_EQ(found[scenario], *std::max_element(timeline.end.begin(), timeline.end.end()));
  }
}

TEST(StepTimes, CountsRanksFromTheShortest) {
  std::vector<Nanos> makespans;
  for (Nanos at = 20; at > 0; --at) makespans.push_back(at);
  const StepTimes times = summarize(makespans);
  EXPECT_EQ(times.p50, 10);  // 10 of 20 are no longer
  EXPECT_EQ(times.p95, 19);
  EXPECT_EQ(times.shortest, 1);
  EXPECT_EQ(times.longest, 20);
  EXPECT_DOUBLE_EQ(times.mean, 10.5);
  EXPECT_EQ(times.makespans, makespans);
}

TEST(StepTimes, TiesCountHalf) {
  const std::vector<Nanos> first{1, 2, 3, 4};
  const std::vector<Nanos> second{2, 2, 2, 9};
  EXPECT_DOUBLE_EQ(compute_win_probability(first, second), 2.5 / 4);
  EXPECT_DOUBLE_EQ(compute_win_probability(second, first), 1.5 / 4);
}

// The critical path is 0F0, 1F0, 1B0, 1F1, 1B1, 0B1 and two messages: 2 F on rank 1 and one on rank
// 0 (1 ms), 2 B and one (2 ms), 2 messages (0.1 ms).
TEST(Sensitivity, IsAHundredthOfWhatTheCriticalPathHolds) {
  const Case made = two_ranks();
  const Sensitivity sensitivity = find_sensitivity(made.program, Timing{made.durations});
  EXPECT_EQ(sensitivity.by_rank, (std::vector<Nanos>{30'000, 60'000}));
  EXPECT_EQ(sensitivity.by_kind[static_cast<std::size_t>(BusyKind::kF)], 30'000);
  EXPECT_EQ(sensitivity.by_kind[static_cast<std::size_t>(BusyKind::kB)], 60'000);
  EXPECT_EQ(sensitivity.by_kind[static_cast<std::size_t>(BusyKind::kSend)], 2'000);
  EXPECT_EQ(sensitivity.by_kind[static_cast<std::size_t>(BusyKind::kW)], 0);
}

}  // namespace
}  // namespace bubblescope::tests

// Tests costs and noise that are fitted to steps which were made with known ones.
#include "sim/analysis/fit_costs.h"

#include <gtest/gtest.h>

#include <cmath>
#include <list>
#include <utility>
#include <vector>

#include "sim/analysis/pauses.h"
#include "sim/analysis/replay.h"
#include "sim/engine/simulate.h"
#include "sim/model/noise.h"
#include "sim/model/restage.h"
#include "sim/predict/predict.h"
#include "tests/support/error_text.h"
#include "tests/support/recorded_step.h"

namespace bubblescope::tests {
namespace {

constexpr std::int32_t kStages = 4;

/// 1F1B with p = 4, m = 8: F of stage s takes 10 + s ms, B twice as long, messages 0.5 ms.
Nanos duration_of(const Instruction& one) {
  if (!is_compute(one.op.kind)) return 500'000;
  const Nanos forward = 10'000'000 + 1'000'000 * one.op.stage;
  return one.op.kind == OpKind::kForward ? forward : 2 * forward;
}

/// Steps of one job, each with its replicas, that outlive the references to them.
class Job {
 public:
  explicit Job(const RecordedStep& base) : base_(base) {
    for (const Instruction& one : base_.program.instructions)
      durations_.push_back(duration_of(one));
  }

  /// Adds `count` steps with `replicas` replicas, drawn from the noise.
  void draw(const Noise& noise, std::size_t count, std::size_t replicas, double factor = 1) {
    for (std::size_t step = 0; step < count; ++step) {
      ReplicatedStep& next = steps_.emplace_back();
      for (std::size_t replica = 0; replica < replicas; ++replica) {
        Noise own = noise;
        own.replica = replica;
        const NoiseModel model(base_.program, durations_, own);
        const NoisyBatch batch(model, step / kBatchWidth);
        std::vector<Nanos> drawn(durations_.size());
        for (InstructionId id = 0; id < drawn.size(); ++id)
          drawn[id] = std::llround(factor * batch(id)[step % kBatchWidth]);
        timelines_.push_back(simulate(base_.program, drawn));
        next.push_back({base_.program, timelines_.back()});
      }
    }
  }

  const std::vector<ReplicatedStep>& steps() const { return steps_; }
  std::vector<OpSample> samples() const { return collect_samples(steps_, kStages); }

 private:
  const RecordedStep& base_;
  std::vector<Nanos> durations_;
  std::list<Timeline> timelines_;
  std::vector<ReplicatedStep> steps_;
};

const RecordedStep& recorded() {
  static const RecordedStep step = record_step("1f1b", {.ranks = kStages, .microbatches = 8});
  return step;
}

TEST(FitCosts, KnownCostsComeBackToTheNanosecond) {
  Job job(recorded());
  job.draw({}, 2, 1);
  const FittedCosts fitted = fit_costs(job.steps(), {kStages, {}});
  ASSERT_EQ(fitted.table.stages.size(), 4u);
  for (std::size_t stage = 0; stage < 4; ++stage) {
    const Nanos forward = 10'000'000 + 1'000'000 * static_cast<Nanos>(stage);
    EXPECT_EQ(fitted.table.stages[stage].forward, forward);
    EXPECT_EQ(fitted.table.stages[stage].backward, 2 * forward);
    EXPECT_FALSE(fitted.table.stages[stage].input_grad);
  }
  EXPECT_EQ(fitted.table.message.latency, 500'000);
  EXPECT_FALSE(fitted.table.noise);
  EXPECT_TRUE(fitted.table.replicas.empty());
  EXPECT_FALSE(fitted.drift);
}

/// The step with a link from rank 1 to rank 2 on which messages take this long.
Timeline run_with_link(Nanos latency) {
  std::vector<Nanos> durations;
  for (const Instruction& one : recorded().program.instructions)
    durations.push_back(is_message(one) && one.rank == 1 && one.peer == 2 ? latency
                                                                          : duration_of(one));
  return simulate(recorded().program, durations);
}

TEST(FitCosts, ASlowLinkHasATimeOfItsOwn) {
  const Timeline timeline = run_with_link(8'000'000);
  const std::vector<ReplicatedStep> steps{{{recorded().program, timeline}}};
  const CostTable table = fit_costs(steps, {kStages, {}}).table;
  EXPECT_EQ(table.message.latency, 500'000);
  ASSERT_EQ(table.links.size(), 1u);
  EXPECT_EQ(std::pair(table.links[0].from, table.links[0].to), std::pair(1, 2));
  EXPECT_EQ(table.links[0].transfer.latency, 8'000'000);
}

// Every op starts 30 us after it could. The next ones do so in any schedule, so that the fitted
// costs, which have no gap in the ops themselves, give the measured step.
TEST(FitCosts, LateLaunchesAreGapsAndPartsOfMessages) {
  const RecordedStep& step = recorded();
  std::vector<Nanos> durations;
  for (const Instruction& one : step.program.instructions)
    durations.push_back(duration_of(one) + (is_compute(one.op.kind) ? 30'000 : 0));
  Timeline late = simulate(step.program, durations);
  for (InstructionId id = 0; id < durations.size(); ++id)
    if (is_compute(step.program.instructions[id].op.kind)) late.start[id] += 30'000;
  const std::vector<ReplicatedStep> steps{{{step.program, late}}};
  const CostTable table = fit_costs(steps, {kStages, {}}).table;
  EXPECT_EQ(table.stages[1].forward, 11'000'000);
  EXPECT_EQ(table.op_gap, 30'000);
  EXPECT_EQ(table.message.latency, 530'000);
  Config config;
  config.costs = table;
  const Nanos predicted = predict(step.schedule, config).report.makespan;
  EXPECT_NEAR(static_cast<double>(predicted), static_cast<double>(compute_makespan(late)), 60'000);
}

// A network that buffers has carried most of a message by the time at which its receive is posted:
// only those messages show how long they take whose receiver waited for them, a quarter here.
TEST(FitCosts, MessagesThatAreReceivedLateDoNotCount) {
  UniformCost cost;
  cost.forward = 10'000'000;
  cost.backward = 20'000'000;
  cost.message = 500'000;
  RecordedStep step = record_step("1f1b", {.ranks = kStages, .microbatches = 16}, cost,
                                  {.mode = P2pMode::kHostRendezvous});
  for (InstructionId id = 0; id < step.program.size(); ++id) {
    const Instruction& message = step.program.instructions[id];
    if (!is_message(message)) continue;
    const bool is_late = message.op.microbatch % 4 != 0;
    if (is_late) step.timeline.start[id] += 400'000;
    for (const InstructionId post : step.program.dependencies_of(id)) {
      const bool sends = step.program.instructions[post].rank == message.rank;
      step.timeline.end[post] = step.timeline.start[id] - (sends == is_late ? 1'000 : 0);
    }
  }
  const std::vector<ReplicatedStep> steps{{{step.program, step.timeline}}};
  const CostTable table = fit_costs(steps, {kStages, {}}).table;
  EXPECT_EQ(table.message.latency - std::llround(find_launch_gaps(steps).behind_messages), 500'000);
  EXPECT_TRUE(table.links.empty());
}

// The link's median message takes four times the usual time, because five of its eight messages are
// slow; on the others three of eight are. 20 of 48 messages are slow, and of eight messages five or
// more are slow in 18 % of all ways to choose them.
TEST(FitCosts, ALinkWhoseMessagesVaryHasNone) {
  std::vector<Nanos> durations;
  for (const Instruction& one : recorded().program.instructions) {
    const bool is_of_link = one.rank == 1 && one.peer == 2;
    durations.push_back(!is_message(one)                               ? duration_of(one)
                        : one.op.microbatch % 8 < (is_of_link ? 5 : 3) ? 2'000'003
                                                                       : 500'001);
  }
  const Timeline timeline = simulate(recorded().program, durations);
  const std::vector<ReplicatedStep> steps{{{recorded().program, timeline}}};
  const FittedCosts fitted = fit_costs(steps, {kStages, {}});
  EXPECT_TRUE(fitted.table.links.empty());
  EXPECT_EQ(fitted.table.message.latency, 500'001);
  ASSERT_EQ(fitted.notes.size(), 1u);
  EXPECT_EQ(fitted.notes[0],
            "the median message from rank 1 to rank 2 took 2.000003 ms for 500.001 us elsewhere, "
            "but not by more than messages differ by chance: the costs have one time for both");
}

TEST(FitCosts, ALinkThatHardlyDiffersHasNone) {
  for (const Nanos latency : {500'000, 650'000, 400'000}) {
    const Timeline timeline = run_with_link(latency);
    const std::vector<ReplicatedStep> steps{{{recorded().program, timeline}}};
    EXPECT_TRUE(fit_costs(steps, {kStages, {}}).table.links.empty()) << latency;
  }
}

// Forwards and backwards of stage 0 take 10 / 11.5 and those of stage 3 take 13 / 11.5 of what the
// stages between take in the mean: layers that are lighter and heavier. A head that only adds to
// forwards is none of that.
TEST(FitCosts, EndsThatDifferByOneFactorHaveHeavierLayers) {
  Job job(recorded());
  job.draw({}, 1, 1);
  EXPECT_EQ(fit_costs(job.steps(), {kStages, {}}).table.ends, Ends::kHeavierLayers);
  EXPECT_EQ(fit_costs(job.steps(), {kStages, {}, true}).table.ends, Ends::kMoreLayers);
  std::vector<Nanos> durations = collect_durations(job.steps()[0][0].timeline);
  for (InstructionId id = 0; id < durations.size(); ++id) {
    const Op& op = recorded().program.instructions[id].op;
    if (op.kind == OpKind::kForward && op.stage == 3) durations[id] += 4'000'000;
  }
  const Timeline timeline = simulate(recorded().program, durations);
  const std::vector<ReplicatedStep> steps{{{recorded().program, timeline}}};
  EXPECT_EQ(fit_costs(steps, {kStages, {}}).table.ends, Ends::kExtraWork);
}

/// How the ends differ if the forwards and backwards of the last stage take `factor` times as long
/// as those of the others, which take equally long.
Ends ends_with_last(double factor) {
  std::vector<Nanos> durations;
  for (const Instruction& one : recorded().program.instructions) {
    const Nanos equal = one.op.kind == OpKind::kForward ? 10'000'000 : 20'000'000;
    const bool is_last = is_compute(one.op.kind) && one.op.stage == kStages - 1;
    durations.push_back(!is_compute(one.op.kind) ? 500'000
                        : is_last                ? std::llround(factor * static_cast<double>(equal))
                                                 : equal);
  }
  const Timeline timeline = simulate(recorded().program, durations);
  const std::vector<ReplicatedStep> steps{{{recorded().program, timeline}}};
  return fit_costs(steps, {kStages, {}}).table.ends;
}

// No layers of a model take half as long again as others: that is a head, which joined stages have
// once. A stage that takes shorter has fewer layers.
TEST(FitCosts, OnlyEndsThatTakeALittleLongerHaveHeavierLayers) {
  EXPECT_EQ(ends_with_last(1.0), Ends::kMoreLayers);
  EXPECT_EQ(ends_with_last(1.3), Ends::kHeavierLayers);
  EXPECT_EQ(ends_with_last(1.5), Ends::kExtraWork);
  EXPECT_EQ(ends_with_last(2.0), Ends::kExtraWork);
  EXPECT_EQ(ends_with_last(0.5), Ends::kMoreLayers);
}

// A trace of eight stages of which the last takes as long as two: joined to four, their work is the
// same as before.
TEST(FitCosts, JoinedStagesAreTheSumOfTheirParts) {
  const RecordedStep step =
      record_step("interleaved", {.ranks = 4, .chunks = 2, .microbatches = 8});
  std::vector<Nanos> durations;
  for (const Instruction& one : step.program.instructions)
    durations.push_back(!is_compute(one.op.kind) ? 1'000
                        : one.op.stage == 7      ? 8'000'000
                                                 : 4'000'000);
  const Timeline timeline = simulate(step.program, durations);
  const std::vector<ReplicatedStep> steps{{{step.program, timeline}}};
  const RecordedStep four = record_step("1f1b", {.ranks = 4, .microbatches = 8});
  const CostTable joined = restage(fit_costs(steps, {8, {}}).table, *four.schedule);
  std::vector<Nanos> forwards;
  for (const StageEntry& stage : joined.stages) forwards.push_back(stage.forward);
  EXPECT_EQ(forwards, (std::vector<Nanos>{8'000'000, 8'000'000, 8'000'000, 12'000'000}));
}

TEST(FitCosts, FullBackwardsAreSplitWhereAsked) {
  Job job(recorded());
  job.draw({}, 1, 1);
  const FittedCosts fitted = fit_costs(job.steps(), {kStages, 0.25});
  ASSERT_EQ(fitted.table.stages.size(), std::size_t{kStages});
  for (const StageEntry& stage : fitted.table.stages) {
    EXPECT_EQ(stage.input_grad, *stage.backward / 4);
    EXPECT_EQ(*stage.input_grad + *stage.weight_grad, stage.backward);
  }
}

// The first stage's backward takes as long as its forward, the others' twice as long: with halves,
// the first computes no input gradient.
TEST(FitCosts, AFirstStageWithoutInputGradientIsSeen) {
  Job job(recorded());
  job.draw({}, 1, 1);
  const ObservedStep observed = job.steps()[0][0];
  std::vector<Nanos> durations = collect_durations(observed.timeline);
  for (InstructionId id = 0; id < durations.size(); ++id) {
    const Op& op = recorded().program.instructions[id].op;
    if (op.kind == OpKind::kBackward && op.stage == 0) durations[id] /= 2;
  }
  const Timeline timeline = simulate(recorded().program, durations);
  const std::vector<ReplicatedStep> steps{{{recorded().program, timeline}}};
  const FittedCosts fitted = fit_costs(steps, {kStages, 0.5});
  EXPECT_EQ(fitted.table.stages[0].input_grad, 0);
  EXPECT_EQ(fitted.table.stages[0].weight_grad, 10'000'000);
  EXPECT_EQ(fitted.table.stages[1].input_grad, 11'000'000);
  EXPECT_FALSE(fitted.notes.empty());
}

// Ops differ from step to step by 2 %, and no micro-batch is longer than the others in all of them.
TEST(FitCosts, PerMicrobatchOnlyIterationsDiffer) {
  Noise noise;
  noise.op_jitter = 0.02;
  Job job(recorded());
  job.draw(noise, 16, 1);
  const FittedCosts fitted = fit_costs(job.steps(), {kStages, {}, true});
  ASSERT_EQ(fitted.table.lists.size(), 4u);
  ASSERT_EQ(fitted.table.lists[1].size(), 2u);  // F and B
  ASSERT_EQ(fitted.table.lists[1][0].values.size(), 8u);
  for (const std::int64_t time : fitted.table.lists[1][0].values)
    EXPECT_NEAR(static_cast<double>(time), 11e6, 0.03 * 11e6);  // a median of 16: 5 sigma
  ASSERT_TRUE(fitted.table.noise);
  EXPECT_NEAR(fitted.table.noise->op_jitter, 0.02, 0.004);
  EXPECT_EQ(fitted.table.noise->sequence_length_jitter, 0);
  EXPECT_FALSE(fitted.table.divisible);
}

TEST(FitCosts, PerMicrobatchLengthsMustBeThoseOfAllSteps) {
  Noise noise;
  noise.sequence_length_jitter = 0.1;
  Job job(recorded());
  job.draw(noise, 8, 1);
  EXPECT_TRUE(fails_with(
      [&] {
        fit_costs(job.steps(), {kStages, {}, true});
      },
      "iterations differ in their micro-batches"));
  Job replicated(recorded());
  replicated.draw({}, 2, 2);
  EXPECT_TRUE(fails_with(
      [&] {
        fit_costs(replicated.steps(), {kStages, {}, true});
      },
      "2 data-parallel replicas"));
}

// Sigma is estimated from n draws with a relative error of about 1/sqrt(2 n): 4 sigma are allowed.
// Here are 48 steps with 2 replicas: 48 steps, 768 lengths, 384 ranks, 6144 ops.
TEST(FitNoise, FindsTheSigmasThatWereDrawn) {
  Noise noise;
  noise.op_jitter = 0.02;
  noise.rank_jitter = 0.03;
  noise.sequence_length_jitter = 0.1;
  noise.step_jitter = 0.05;
  Job job(recorded());
  job.draw(noise, 48, 2);
  const Noise fitted = fit_noise(job.samples()).noise;
  EXPECT_NEAR(fitted.op_jitter, noise.op_jitter, 0.05 * noise.op_jitter);
  EXPECT_NEAR(fitted.rank_jitter, noise.rank_jitter, 0.2 * noise.rank_jitter);
  EXPECT_NEAR(fitted.sequence_length_jitter, noise.sequence_length_jitter, 0.011);
  EXPECT_NEAR(fitted.step_jitter, noise.step_jitter, 0.4 * noise.step_jitter);
  EXPECT_EQ(fitted.stragglers.probability, 0);
}

TEST(FitNoise, OneEffectIsNotTakenForAnother) {
  for (double Noise::*sigma :
       {&Noise::op_jitter, &Noise::rank_jitter, &Noise::sequence_length_jitter}) {
    Noise noise;
    noise.*sigma = 0.05;
    Job job(recorded());
    job.draw(noise, 48, 2);
    const Noise fitted = fit_noise(job.samples()).noise;
    for (double Noise::*other : {&Noise::op_jitter, &Noise::rank_jitter,
                                 &Noise::sequence_length_jitter, &Noise::step_jitter})
      EXPECT_NEAR(fitted.*other, noise.*other, 0.004);
  }
}

TEST(FitNoise, StragglersAreTheRareLongOps) {
  Noise noise;
  noise.op_jitter = 0.02;
  noise.stragglers = {0.01, 4, false};
  Job job(recorded());
  job.draw(noise, 48, 1);
  const Noise fitted = fit_noise(job.samples()).noise;
  // 3072 ops, of which 31 straggle in the mean.
  EXPECT_NEAR(fitted.stragglers.probability, 0.01, 4 * 0.0018);
  EXPECT_NEAR(fitted.stragglers.factor, 4, 0.1);
  EXPECT_NEAR(fitted.op_jitter, 0.02, 0.002);
}

// A time of 0 has no logarithm, so such samples say nothing about noise.
TEST(FitNoise, OpsWithoutDurationHaveNoNoise) {
  Job job(recorded());
  job.draw({}, 2, 1);
  std::vector<OpSample> samples = job.samples();
  ASSERT_FALSE(samples.empty());
  for (OpSample& sample : samples) sample.time = 0;
  const FittedNoise fitted = fit_noise(samples);
  EXPECT_FALSE(fitted.noise.is_random());
  EXPECT_EQ(fitted.is_straggler, std::vector<bool>(samples.size(), false));
}

TEST(FindDrift, SeesALastingChangeAndNoOther) {
  Noise noise;
  noise.op_jitter = 0.02;
  Job steady(recorded());
  steady.draw(noise, 16, 2);
  EXPECT_FALSE(find_drift(steady.samples()));
  Job changed(recorded());
  changed.draw(noise, 6, 2);
  changed.draw(noise, 5, 2, 1.05);
  const std::optional<Drift> drift = find_drift(changed.samples());
  ASSERT_TRUE(drift);
  EXPECT_EQ(drift->first_step, 6u);
  EXPECT_NEAR(drift->change, 0.05, 0.005);
  const FittedCosts fitted = fit_costs(changed.steps(), {kStages, {}});
  EXPECT_EQ(fitted.first_step, 6u);
  EXPECT_NEAR(static_cast<double>(fitted.table.stages[0].forward), 10.5e6, 0.01 * 10.5e6);
}

}  // namespace
}  // namespace bubblescope::tests

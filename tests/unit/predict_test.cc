// The library's predict(): one call from a schedule and a Config to a complete report.
#include "sim/predict/predict.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include "sim/ir/error.h"
#include "sim/model/schedule_def.h"
#include "tests/support/error_text.h"

namespace bubblescope::tests {
namespace {

constexpr std::int32_t kRanks = 4;
constexpr std::int32_t kMicrobatches = 8;
constexpr Nanos kForward = 2;
constexpr Nanos kBackward = 4;
/// (m + p - 1)(f + b): the last micro-batch enters after the m - 1 before it, and has p - 1 more
/// ranks to pass on its way there and back.
constexpr Nanos kMakespan = (kMicrobatches + kRanks - 1) * (kForward + kBackward);

ValidSchedule build(const std::string& name, std::int32_t ranks = kRanks,
                    std::int32_t microbatches = kMicrobatches) {
  ScheduleRequest request;
  request.shape.ranks = ranks;
  request.shape.microbatches = microbatches;
  return build_schedule(find_schedule(name), request);
}

UniformCost cost_of_ops() {
  UniformCost cost;
  cost.forward = kForward;
  cost.input_grad = cost.weight_grad = kBackward / 2;
  return cost;
}

Config config_of_ops() {
  Config config;
  config.costs = UniformCosts{cost_of_ops()};
  return config;
}

std::string prediction_error(const ValidSchedule& schedule, const Config& config) {
  return error_of([&] { predict(schedule, config); });
}

// 1F1B with p = 4 and m = 8; the brief report has the same times, and no critical path.
TEST(Predict, HasAsMuchOfAReportAsIsAskedFor) {
  const ValidSchedule schedule = build("1f1b");
  Config config = config_of_ops();
  const Prediction full = predict(schedule, config);
  config.detail = Detail::kBriefWithBound;
  const PredictedStep brief = predict_step(full.schedule, full.program, config);
  EXPECT_EQ(brief.report.makespan, kMakespan);
  EXPECT_EQ(brief.report.lower_bound, full.report.lower_bound);
  EXPECT_EQ(brief.report.bubble->ratio, full.report.bubble->ratio);
  EXPECT_FALSE(full.report.critical_path.empty());
  EXPECT_TRUE(brief.report.critical_path.empty());
  config.detail = Detail::kBrief;
  EXPECT_EQ(predict_step(full.schedule, full.program, config).report.lower_bound, 0);
  config.detail = Detail::kTimes;
  const PredictedStep times = predict_step(full.schedule, full.program, config);
  EXPECT_EQ(times.timeline.end, full.timeline.end);
  EXPECT_TRUE(times.report.ranks.empty());
}

// Both make another Program than the one that is given.
TEST(Predict, RefusesConditionsOfAnotherProgram) {
  const Prediction step = predict(build("1f1b"), config_of_ops());
  Config config = config_of_ops();
  config.arrivals.assign(8, 1);
  EXPECT_EQ(error_of([&] { predict_step(step.schedule, step.program, config); }),
            "`arrivals` are not part of this Program; predict the schedule");
  config.arrivals.clear();
  config.policy = ReadyPriority::kOrder;
  EXPECT_EQ(error_of([&] { predict_step(step.schedule, step.program, config); }),
            "a `policy` chooses another order than that of this Program; predict the schedule");
}

TEST(Predict, GivesOneFOneBItsClosedForm) {
  const Prediction step = predict(build("1f1b"), config_of_ops());
  EXPECT_EQ(step.report.makespan, kMakespan);
  EXPECT_EQ(step.report.schedule, "1f1b");
  EXPECT_EQ(step.timeline.end.size(), step.program.size());
  EXPECT_FALSE(step.timing.traffic);
  EXPECT_TRUE(step.notes.empty());
}

TEST(Predict, AccountsForEveryNanosecondOfEveryRank) {
  const BubbleReport report = predict(build("1f1b"), config_of_ops()).report;
  ASSERT_EQ(report.ranks.size(), 4U);
  for (const RankReport& rank : report.ranks) {
    const auto sum = [](const auto& times) {
      return std::accumulate(times.begin(), times.end(), Nanos{0});
    };
    EXPECT_EQ(rank.busy, kMicrobatches * (kForward + kBackward));
    EXPECT_EQ(rank.busy + rank.idle, kMakespan);
    EXPECT_EQ(sum(rank.busy_by_kind), rank.busy);
    EXPECT_EQ(sum(rank.idle_by_cause), rank.idle);
  }
}

TEST(Predict, TakesTheSameCostsFromEverySource) {
  Config config;
  CostTable table;
  StageEntry stage;
  stage.forward = kForward;
  stage.backward = kBackward;
  table.stages.assign(kRanks, stage);
  config.costs = table;
  EXPECT_EQ(predict(build("1f1b"), config).report.makespan, kMakespan);
  StageLayers layers;
  layers.transformers = 3;
  config.costs = LayoutCosts{cost_of_ops(), LayerLayout(kRanks, layers), {}};
  EXPECT_EQ(predict(build("1f1b"), config).report.makespan, kMakespan);
}

// The slow replica takes 3/2 of the makespan M of the other, which begins late: by less than M / 2
// it changes nothing, and by more the step ends with it, that much later than M.
TEST(Predict, EndsAStepWithTheReplicaThatEndsLast) {
  CostTable table;
  StageEntry stage;
  stage.forward = kForward;
  stage.backward = kBackward;
  table.stages.assign(kRanks, stage);
  StageEntry slow = stage;
  slow.forward = kForward * 3 / 2;
  slow.backward = kBackward * 3 / 2;
  table.replicas = {std::vector<StageEntry>(kRanks, stage), std::vector<StageEntry>(kRanks, slow)};
  table.outside_pipeline = 100;
  for (const Nanos late : {Nanos{0}, kMakespan / 3, kMakespan * 2 / 3}) {
    table.late_starts = {late, 0};
    Config config;
    config.costs = table;
    const BubbleReport report = predict(build("1f1b"), config).report;
    EXPECT_EQ(report.job->step, 100 + std::max(kMakespan * 3 / 2, late + kMakespan)) << late;
    EXPECT_EQ(report.job->step, report.makespan + report.job->outside_pipeline) << late;
    table.noise = Noise{};
    table.noise->op_jitter = 1e-9;  // which changes no op of so few nanoseconds
    config.costs = table;
    const BubbleReport noisy = predict(build("1f1b"), config).report;
    EXPECT_EQ(noisy.job->step, report.job->step) << late;
    EXPECT_EQ(noisy.noise->mean, static_cast<double>(report.makespan)) << late;
    table.noise.reset();
  }
}

// The loss counts as a layer, so rank 1 has 3 of 4 layers and 3/4 of the work of both, 2 (f + b).
TEST(Predict, DistributesWorkByLayers) {
  Config config;
  StageLayers first;
  first.transformers = 1;
  StageLayers second{0, 2, 0, 1};
  config.costs = LayoutCosts{cost_of_ops(), {first, second}, {}};
  const BubbleReport report = predict(build("1f1b", 2, 8), config).report;
  EXPECT_EQ(report.ranks[1].busy, 8 * 2 * (kForward + kBackward) * 3 / 4);
  config.costs = LayoutCosts{cost_of_ops(), {first}, {}};
  EXPECT_TRUE(
      prediction_error(build("1f1b", 2, 8), config).starts_with("`layout` has 1 stage, but"));
}

// 1000 bytes take 1000 ns at 8 Gb/s: F, message, F, B, message, B.
TEST(Predict, ReportsTheUseOfLinks) {
  Config config = config_of_ops();
  UniformNetwork network;
  network.bytes = 1000;
  network.link_gbps = 8;
  std::get<UniformCosts>(config.costs).network = network;
  const Prediction step = predict(build("1f1b", 2, 1), config);
  EXPECT_EQ(step.report.makespan, 2 * (kForward + kBackward + 1000));
  ASSERT_EQ(step.report.links.size(), 2U);
  for (const LinkUse& link : step.report.links) {
    EXPECT_EQ(link.bytes, 1000);
    EXPECT_EQ(link.busy, 1000);
    EXPECT_EQ(link.shared, 0);
  }
}

TEST(Predict, SimulatesNoiseAndSensitivityWhereAskedFor) {
  Config config = config_of_ops();
  EXPECT_FALSE(predict(build("1f1b"), config).report.noise);
  config.scenarios.noise.op_jitter = 0.1;
  config.scenarios.count = 50;
  config.scenarios.sensitivity = true;
  const BubbleReport report = predict(build("1f1b"), config).report;
  ASSERT_TRUE(report.noise);
  EXPECT_EQ(report.noise->makespans.size(), 50U);
  ASSERT_TRUE(report.sensitivity);
  EXPECT_EQ(report.sensitivity->by_rank.size(), 4U);
}

// Everything waits for the first forward, directly or not.
TEST(Predict, AddsInjectedDelays) {
  Config config = config_of_ops();
  config.injections = {parse_injection("rank=0,op=0F0,delay=5ns")};
  EXPECT_EQ(predict(build("1f1b"), config).report.makespan, kMakespan + 5);
  config.injections = {parse_injection("rank=0,op=0F0,die")};
  EXPECT_NE(prediction_error(build("1f1b"), config).find("0F0"), std::string::npos);
}

// Rank 0 ends micro-batch 0 before it begins 1, and rank 1 does it the other way round.
TEST(Predict, RefusesSchedulesThatDeadlock) {
  Schedule schedule = build("1f1b", 2, 2);
  schedule.order[0] = {forward(0, 0), backward(0, 0), forward(0, 1), backward(0, 1)};
  schedule.order[1] = {forward(1, 1), backward(1, 1), forward(1, 0), backward(1, 0)};
  EXPECT_NE(prediction_error(require_valid(schedule), config_of_ops()).find("deadlock"),
            std::string::npos);
}

TEST(Predict, SlowsRanksDown) {
  Config config = config_of_ops();
  config.slow_ranks = {SlowRank{2, 1.5}};
  const BubbleReport report = predict(build("1f1b"), config).report;
  EXPECT_EQ(report.ranks[2].busy, kMicrobatches * (kForward + kBackward) * 3 / 2);
  EXPECT_EQ(report.ranks[1].busy, kMicrobatches * (kForward + kBackward));
}

// R takes as long as F, which it repeats.
TEST(Predict, AppliesMovesToTheSchedule) {
  Config config = config_of_ops();
  config.moves.recompute = {Recompute::kFull};
  const Prediction step = predict(build("1f1b"), config);
  for (const RankReport& rank : step.report.ranks)
    EXPECT_EQ(rank.busy_by_kind[static_cast<std::size_t>(BusyKind::kR)], kMicrobatches * kForward);
  EXPECT_NE(prediction_error(step.schedule, config).find("recomputes already"), std::string::npos);
}

TEST(Predict, NotesBackwardsThatTakeAnotherTimeWhereTheyAreSplit) {
  UniformCost cost = cost_of_ops();
  cost.backward = kBackward + 1;
  Config config;
  config.costs = UniformCosts{cost};
  EXPECT_EQ(predict(build("zb-h1"), config).notes, std::vector{Note::kUnequalBackwards});
  EXPECT_TRUE(predict(build("1f1b"), config).notes.empty());
}

TEST(Predict, NotesCapsInUnitsWhereActivationsHaveBytes) {
  Config config;
  CostTable table;
  StageEntry stage;
  stage.forward = kForward;
  stage.backward = kBackward;
  stage.activation_bytes = MemoryDelta{100, 0, -100};
  table.stages.assign(kRanks, stage);
  config.costs = table;
  config.memory.cap = {3 * kWhole};
  EXPECT_EQ(predict(build("1f1b"), config).notes, std::vector{Note::kCapInUnits});
  // Rank 0 of 1F1B holds as many micro-batches as there are ranks.
  EXPECT_EQ(predict(build("1f1b"), config).report.ranks[0].peak.bytes, kRanks * 100);
}

TEST(Predict, RefusesCapsInBytesWhereActivationsHaveNone) {
  Config config = config_of_ops();
  config.memory.cap_bytes = {1000};
  EXPECT_TRUE(
      prediction_error(build("1f1b"), config).starts_with("`cap` is in bytes, but no activation"));
}

ModelCosts llama_on_h100() {
  ModelCosts source;
  source.on.model = Registry<ModelDef>::instance().find("llama3-8b")->model;
  source.on.gpu = Registry<GpuDef>::instance().find("h100")->gpu;
  source.on.parallel.sequence = source.on.model.sequence;
  return source;
}

// Gradients of 2 bytes per weight take half of those of 4 bytes. The device is made just too small
// for the latter.
TEST(Predict, ShrinksGradientsWhereTheyDoNotFit) {
  Config config;
  config.costs = llama_on_h100();
  auto& source = std::get<ModelCosts>(config.costs);
  source.on.gpu.memory = 1'000'000'000'000;
  source.tries_splits = false;  // one that needs less memory would do with larger gradients
  const Prediction roomy = predict(build("1f1b"), config);
  EXPECT_EQ(roomy.models.placed->on.parallel.gradients, Gradients::kFp32);
  Bytes fullest = 0;
  for (const RankReport& rank : roomy.report.ranks)
    fullest = std::max(fullest, rank.peak.bytes.value_or(0));
  source.on.gpu.memory = fullest - 1;
  const Prediction tight = predict(build("1f1b"), config);
  EXPECT_EQ(tight.models.placed->on.parallel.gradients, Gradients::kBf16);
  EXPECT_LT(*tight.report.ranks[0].peak.bytes, *roomy.report.ranks[0].peak.bytes);
  source.may_shrink_gradients = false;
  EXPECT_EQ(predict(build("1f1b"), config).models.placed->on.parallel.gradients, Gradients::kFp32);
}

TEST(Predict, EndsAModelsStepWithItsUpdate) {
  Config config;
  config.costs = llama_on_h100();
  const auto has_optimizer = [&] {
    for (const Instruction& instruction : predict(build("1f1b"), config).program.instructions)
      if (instruction.op.kind == OpKind::kOptimizer) return true;
    return false;
  };
  EXPECT_TRUE(has_optimizer());
  std::get<ModelCosts>(config.costs).end = {OptimizerMode::kNone, GradReduction::kNone};
  EXPECT_FALSE(has_optimizer());
}

}  // namespace
}  // namespace bubblescope::tests

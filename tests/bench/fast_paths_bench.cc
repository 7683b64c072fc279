// Every fast path beside a general one: the benchmark of the fast path, then that of the general
// way to the same answer on the same input. A pair that is hardly apart is a fast path to delete.
//
//   fast                      general                  for
//   BM_ValidateByCycles       BM_ValidateEveryOp       long orders that repeat themselves
//   BM_ValidatePlainOps       BM_ValidateAnyOps        orders of F, B, I and W alone
//   BM_LowerDirectly          BM_LowerBySorting        schedules of plain compute ops
//   BM_SimulateInOnePass      BM_SimulateByEvents      steps that share nothing
//   BM_SimulateBatches        BM_SimulateOneByOne      many scenarios of one Program
//   BM_DeadlockByLists        BM_DeadlockByProgram     posted messages
//   BM_ReportPlainStep        BM_ReportByProgram       plans without a model
//   BM_BoundPlainStep         BM_BoundByProgram        the same
//   BM_DetailPlainStep        BM_DetailByProgram       long orders whose micro-batches differ
//   BM_PredictRepeated        BM_PredictWhole          long orders that repeat themselves
//   BM_ScanJson               BM_ParseJson             profiles and cost files
//   BM_PlanModel/...          BM_PlanModelAfresh/...   plans of a model (plan_bench.cc)
#include <benchmark/benchmark.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "sim/analysis/analyze.h"
#include "sim/analysis/lower_bound.h"
#include "sim/analysis/plain_bound.h"
#include "sim/analysis/plain_stages.h"
#include "sim/analysis/plain_step.h"
#include "sim/analysis/plain_timeline.h"
#include "sim/analysis/plain_times.h"
#include "sim/engine/simulate.h"
#include "sim/engine/simulate_batch.h"
#include "sim/ir/lower.h"
#include "sim/ir/lower_dataflow.h"
#include "sim/ir/lower_messages.h"
#include "sim/ir/posted_run.h"
#include "sim/ir/validate.h"
#include "sim/model/schedule_def.h"
#include "sim/predict/predict_repeated.h"
#include "tests/bench/bench_schedules.h"
#include "traces/json/scan_json.h"

namespace bubblescope::tests {
namespace {

ValidSchedule interleaved() { return schedule_of("interleaved", 64, 2, 1024); }

Program lower_to_program(const ValidSchedule& schedule) {
  return std::get<Program>(lower(schedule));
}

/// Reports time per item; `items` are ops, instructions or bytes.
void per_item(benchmark::State& state, std::size_t items) {
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(items));
}

void per_op(benchmark::State& state, const Schedule& schedule) {
  state.SetItemsProcessed(state.iterations() * schedule.op_count());
}

void BM_ValidateByCycles(benchmark::State& state) {
  const Schedule schedule = interleaved();
  for (auto _ : state) benchmark::DoNotOptimize(validate_schedule(schedule));
  per_op(state, schedule);
}
BENCHMARK(BM_ValidateByCycles)->Unit(benchmark::kMillisecond);

void BM_ValidateEveryOp(benchmark::State& state) {
  const Schedule schedule = interleaved();
  for (auto _ : state) {
    Schedule copy = schedule;  // validate_schedule() takes one as well
    benchmark::DoNotOptimize(copy);
    benchmark::DoNotOptimize(find_problems(copy));
  }
  per_op(state, schedule);
}
BENCHMARK(BM_ValidateEveryOp)->Unit(benchmark::kMillisecond);

Schedule long_one_f_one_b() { return schedule_of("1f1b", 64, 1, 1024); }

void BM_ValidatePlainOps(benchmark::State& state) {
  const Schedule schedule = long_one_f_one_b();
  for (auto _ : state)
    if (!validate_ops(schedule).empty()) state.SkipWithError("the schedule is not valid");
  per_op(state, schedule);
}
BENCHMARK(BM_ValidatePlainOps)->Unit(benchmark::kMillisecond);

/// The same with one overlapped pair, so that the orders are not plain.
void BM_ValidateAnyOps(benchmark::State& state) {
  Schedule schedule = long_one_f_one_b();
  RankOrder& order = schedule.order.front();
  std::size_t second = 0;
  while (order[second].kind != OpKind::kBackward) ++second;
  order[second - 1].pairing = Pairing::kFirst;
  order[second].pairing = Pairing::kSecond;
  for (auto _ : state)
    if (!validate_ops(schedule).empty()) state.SkipWithError("the schedule is not valid");
  per_op(state, schedule);
}
BENCHMARK(BM_ValidateAnyOps)->Unit(benchmark::kMillisecond);

void BM_LowerDirectly(benchmark::State& state) {
  const ValidSchedule schedule = interleaved();
  for (auto _ : state)
    if (!lower_directly(schedule, Overlap::kAtomic)) state.SkipWithError("it cannot be lowered so");
  per_op(state, schedule);
}
BENCHMARK(BM_LowerDirectly)->Unit(benchmark::kMillisecond);

void BM_LowerBySorting(benchmark::State& state) {
  const ValidSchedule schedule = interleaved();
  for (auto _ : state) benchmark::DoNotOptimize(lower_by_sorting(schedule, Overlap::kAtomic));
  per_op(state, schedule);
}
BENCHMARK(BM_LowerBySorting)->Unit(benchmark::kMillisecond);

void BM_SimulateInOnePass(benchmark::State& state) {
  const ValidSchedule schedule = interleaved();
  const Program program = lower_to_program(schedule);
  const std::vector<Nanos> durations = price(program, spread({}, schedule));
  for (auto _ : state) benchmark::DoNotOptimize(simulate(program, durations));
  per_item(state, program.size());
}
BENCHMARK(BM_SimulateInOnePass)->Unit(benchmark::kMillisecond);

void BM_SimulateByEvents(benchmark::State& state) {
  const ValidSchedule schedule = interleaved();
  const Program program = lower_to_program(schedule);
  Traffic nothing_shared;
  nothing_shared.fixed = price(program, spread({}, schedule));
  for (auto _ : state) benchmark::DoNotOptimize(simulate_shared(program, nothing_shared));
  per_item(state, program.size());
}
BENCHMARK(BM_SimulateByEvents)->Unit(benchmark::kMillisecond);

constexpr std::size_t kScenarios = 10 * kBatchWidth;

void BM_SimulateBatches(benchmark::State& state) {
  const ValidSchedule schedule = schedule_of("1f1b", 8, 1, 64);
  const Program program = lower_to_program(schedule);
  const std::vector<Nanos> durations = price(program, spread({}, schedule));
  const BatchDurations same = [&](InstructionId id) {
    Batch batch;
    batch.fill(static_cast<double>(durations[id]));
    return batch;
  };
  for (auto _ : state)
    benchmark::DoNotOptimize(
        simulate_batches(program, kScenarios, [&](std::size_t) { return same; }));
  per_item(state, program.size() * kScenarios);
}
BENCHMARK(BM_SimulateBatches)->Unit(benchmark::kMillisecond);

void BM_SimulateOneByOne(benchmark::State& state) {
  const ValidSchedule schedule = schedule_of("1f1b", 8, 1, 64);
  const Program program = lower_to_program(schedule);
  const std::vector<Nanos> durations = price(program, spread({}, schedule));
  for (auto _ : state)
    for (std::size_t scenario = 0; scenario < kScenarios; ++scenario)
      benchmark::DoNotOptimize(compute_makespan(simulate(program, durations)));
  per_item(state, program.size() * kScenarios);
}
BENCHMARK(BM_SimulateOneByOne)->Unit(benchmark::kMillisecond);

/// Messages of 1F1B whose ranks wait for each of them.
struct PostedMessages {
  ValidSchedule schedule = require_valid(long_one_f_one_b());
  Program dataflow = lower_to_program(schedule);
  LowerOptions options = {.mode = P2pMode::kHostRendezvous};
  std::vector<PostedSteps> steps =
      find_steps(schedule, dataflow, make_posted_lists(schedule, options.posting));
};

void BM_DeadlockByLists(benchmark::State& state) {
  const PostedMessages posted;
  for (auto _ : state)
    if (find_message_deadlock(posted.dataflow, posted.steps, posted.options))
      state.SkipWithError("the schedule deadlocks");
  per_op(state, posted.schedule);
}
BENCHMARK(BM_DeadlockByLists)->Unit(benchmark::kMillisecond);

void BM_DeadlockByProgram(benchmark::State& state) {
  const PostedMessages posted;
  for (auto _ : state) {
    const auto lowered = lower_messages(posted.dataflow, posted.steps, posted.options);
    if (std::holds_alternative<Deadlock>(lowered)) state.SkipWithError("the schedule deadlocks");
  }
  per_op(state, posted.schedule);
}
BENCHMARK(BM_DeadlockByProgram)->Unit(benchmark::kMillisecond);

/// 1F1B on so many ranks with so many micro-batches.
ValidSchedule one_f_one_b(const benchmark::State& state) {
  return schedule_of("1f1b", static_cast<std::int32_t>(state.range(0)), 1,
                     static_cast<std::int32_t>(state.range(1)));
}

void BM_ReportPlainStep(benchmark::State& state) {
  const Schedule schedule = one_f_one_b(state);
  const CostModel costs = spread({}, schedule);
  for (auto _ : state)
    if (!report_plain_step(schedule, costs, {}, LowerBound::kSkip))
      state.SkipWithError("the step is not plain");
  per_op(state, schedule);
}
BENCHMARK(BM_ReportPlainStep)->Args({8, 64})->Args({64, 1024})->Unit(benchmark::kMicrosecond);

void BM_ReportByProgram(benchmark::State& state) {
  const Schedule schedule = one_f_one_b(state);
  const CostModel costs = spread({}, schedule);
  for (auto _ : state) {
    const ValidSchedule valid = require_valid(schedule);
    const Program program = lower_to_program(valid);
    const Timeline timeline = simulate(program, costs);
    benchmark::DoNotOptimize(analyze_briefly(valid, program, timeline, {}, LowerBound::kSkip));
  }
  per_op(state, schedule);
}
BENCHMARK(BM_ReportByProgram)->Args({8, 64})->Args({64, 1024})->Unit(benchmark::kMicrosecond);

void BM_BoundPlainStep(benchmark::State& state) {
  const Schedule schedule = one_f_one_b(state);
  const CostModel costs = spread({}, schedule);
  const std::vector<PlainStage> stages = list_plain_stages(schedule);
  for (auto _ : state)
    benchmark::DoNotOptimize(
        bound_plain_step(schedule, stages, PlainTimes(schedule, costs), SplitBackwards{false}));
  per_op(state, schedule);
}
BENCHMARK(BM_BoundPlainStep)->Args({8, 64})->Args({64, 1024})->Unit(benchmark::kMicrosecond);

void BM_BoundByProgram(benchmark::State& state) {
  const ValidSchedule schedule = one_f_one_b(state);
  const Program program = lower_to_program(schedule);
  const Timeline timeline = simulate(program, spread({}, schedule));
  for (auto _ : state) benchmark::DoNotOptimize(lower_bound(program, timeline));
  per_op(state, schedule);
}
BENCHMARK(BM_BoundByProgram)->Args({8, 64})->Args({64, 1024})->Unit(benchmark::kMicrosecond);

/// Costs by which every micro-batch of a stage takes another time.
CostModel make_listed_costs(const Schedule& schedule) {
  CostModel costs = spread({}, schedule);
  costs.by_microbatch = CostTensor<StageCost>(1);
  std::vector<StageCost> values(static_cast<std::size_t>(schedule.shape.microbatches));
  for (std::int32_t stage = 0; stage < schedule.stages(); ++stage) {
    values.assign(values.size(), costs.stages[static_cast<std::size_t>(stage)]);
    for (std::size_t at = 0; at < values.size(); ++at)
      values[at].forward += static_cast<Nanos>(at % 7);
    costs.by_microbatch.add_stage(values);
  }
  return costs;
}

void BM_DetailPlainStep(benchmark::State& state) {
  const ValidSchedule schedule = one_f_one_b(state);
  const CostModel costs = make_listed_costs(schedule);
  const auto none = [](const BubbleReport&) { return std::vector<std::int32_t>{}; };
  for (auto _ : state)
    if (!detail_plain_step(schedule, costs, {}, none)) state.SkipWithError("the step is not plain");
  per_op(state, schedule);
}
BENCHMARK(BM_DetailPlainStep)->Args({8, 64})->Args({64, 1024})->Unit(benchmark::kMicrosecond);

void BM_DetailByProgram(benchmark::State& state) {
  const ValidSchedule schedule = one_f_one_b(state);
  const CostModel costs = make_listed_costs(schedule);
  for (auto _ : state) {
    const Program program = lower_to_program(schedule);
    const Timeline timeline = simulate(program, costs);
    benchmark::DoNotOptimize(analyze(schedule, program, timeline, {}, Slack::kSkip));
  }
  per_op(state, schedule);
}
BENCHMARK(BM_DetailByProgram)->Args({8, 64})->Args({64, 1024})->Unit(benchmark::kMicrosecond);

/// A long step that repeats itself: 1F1B or two chunks per rank, and the time of a message in ns.
struct LongStep {
  explicit LongStep(const benchmark::State& state)
      : schedule(state.range(0) == 1 ? schedule_of("1f1b", 64, 1, 1024) : interleaved()) {
    UniformCost cost;
    cost.message = state.range(1);
    config.costs = UniformCosts{cost};
    config.slack = Slack::kSkip;
  }

  ValidSchedule schedule;
  Config config;
};

void BM_PredictRepeated(benchmark::State& state) {
  const LongStep step(state);
  const auto none = [](const BubbleReport&) { return std::vector<std::int32_t>{}; };
  for (auto _ : state) {
    const auto predicted = predict_repeated(step.schedule, step.config, none);
    if (!std::holds_alternative<Prediction>(predicted))
      state.SkipWithError("the step was not shortened");
  }
  per_op(state, step.schedule);
}
BENCHMARK(BM_PredictRepeated)
    ->Args({1, 0})
    ->Args({1, 400'000})
    ->Args({2, 0})
    ->Unit(benchmark::kMillisecond);

void BM_PredictWhole(benchmark::State& state) {
  const LongStep step(state);
  for (auto _ : state) benchmark::DoNotOptimize(predict(step.schedule, step.config));
  per_op(state, step.schedule);
}
BENCHMARK(BM_PredictWhole)
    ->Args({1, 0})
    ->Args({1, 400'000})
    ->Args({2, 0})
    ->Unit(benchmark::kMillisecond);

/// Wants everything, and keeps nothing but the number of keys.
class KeyCounter final : public traces::JsonVisitor {
 public:
  bool visit_key(std::string_view) override {
    ++keys_;
    return true;
  }
  void visit_string(std::string_view) override {}
  void visit_number(std::string_view) override {}
  void begin_object() override {}
  void end_object() override {}
  void begin_array() override {}
  void end_array() override {}

  std::int64_t keys() const { return keys_; }

 private:
  std::int64_t keys_ = 0;
};

/// Slices of a Chrome trace.
std::string slices() {
  std::string text = "[";
  for (int at = 0; at < 20'000; ++at) {
    const std::string number = std::to_string(at);
    text += (at == 0 ? "" : ",") + (R"({"name":"forward )" + number) + R"(","ph":"X","ts":)" +
            number + R"(.5,"dur":10,"pid":0,"tid":1,"args":{"stream":7}})";
  }
  return text + "]";
}

void BM_ScanJson(benchmark::State& state) {
  const std::string text = slices();
  for (auto _ : state) {
    KeyCounter counter;
    if (!traces::scan_json(text, counter)) state.SkipWithError("the full parser is needed");
    benchmark::DoNotOptimize(counter.keys());
  }
  per_item(state, text.size());
}
BENCHMARK(BM_ScanJson)->Unit(benchmark::kMillisecond);

void BM_ParseJson(benchmark::State& state) {
  const std::string text = slices();
  for (auto _ : state) {
    KeyCounter counter;
    traces::parse_json_into(text, "slices", counter, [] { return false; });
    benchmark::DoNotOptimize(counter.keys());
  }
  per_item(state, text.size());
}
BENCHMARK(BM_ParseJson)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace bubblescope::tests

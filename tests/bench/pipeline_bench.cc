// The cost of each verb per op, for the shapes that the README quotes.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <variant>
#include <vector>

#include "sim/analysis/analyze.h"
#include "sim/engine/simulate.h"
#include "sim/ir/check_messages.h"
#include "sim/ir/lower.h"
#include "sim/ir/validate.h"
#include "sim/model/schedule_def.h"
#include "tests/support/as_written.h"

namespace bubblescope::tests {
namespace {

ScheduleRequest make_request(std::int32_t ranks, std::int32_t chunks, std::int32_t microbatches) {
  ScheduleRequest request;
  request.shape.ranks = ranks;
  request.shape.chunks = chunks;
  request.shape.microbatches = microbatches;
  return request;
}

ValidSchedule interleaved() {
  return build_schedule(find_schedule("interleaved"), make_request(64, 2, 1024));
}

/// Reports time per item; `items` are ops or instructions.
void per_item(benchmark::State& state, std::int64_t items) {
  state.SetItemsProcessed(state.iterations() * items);
}

void BM_Build(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(interleaved());
  per_item(state, interleaved()->op_count());
}
BENCHMARK(BM_Build)->Unit(benchmark::kMillisecond);

/// Eight million ops, which are validated by their cycle.
void BM_BuildLong(benchmark::State& state) {
  const ScheduleRequest request = make_request(256, 1, 16'384);
  for (auto _ : state) benchmark::DoNotOptimize(build_schedule(find_schedule("1f1b"), request));
  per_item(state, 2LL * 256 * 16'384);
}
BENCHMARK(BM_BuildLong)->Unit(benchmark::kMillisecond);

void BM_Validate(benchmark::State& state) {
  const ValidSchedule schedule = interleaved();
  for (auto _ : state) benchmark::DoNotOptimize(validate_ops(schedule));
  per_item(state, schedule->op_count());
}
BENCHMARK(BM_Validate)->Unit(benchmark::kMillisecond);

void BM_Lower(benchmark::State& state) {
  const ValidSchedule schedule = interleaved();
  for (auto _ : state) benchmark::DoNotOptimize(lower(schedule));
  per_item(state, schedule->op_count());
}
BENCHMARK(BM_Lower)->Unit(benchmark::kMillisecond);

/// Every message mode; a mode is run only where a stricter one deadlocks.
void BM_CheckMessages(benchmark::State& state) {
  const ValidSchedule schedule = build_schedule(find_schedule("1f1b"), make_request(64, 1, 1024));
  for (auto _ : state) benchmark::DoNotOptimize(check_messages(schedule));
  per_item(state, schedule->op_count());
}
BENCHMARK(BM_CheckMessages)->Unit(benchmark::kMillisecond);

void BM_Simulate(benchmark::State& state) {
  const ValidSchedule schedule = interleaved();
  const Program program = std::get<Program>(lower(schedule));
  const std::vector<Nanos> durations = price(program, spread({}, schedule));
  for (auto _ : state) benchmark::DoNotOptimize(simulate(program, durations));
  per_item(state, program.size());
}
BENCHMARK(BM_Simulate)->Unit(benchmark::kMillisecond);

void BM_Analyze(benchmark::State& state) {
  const ValidSchedule schedule = interleaved();
  const Program program = std::get<Program>(lower(schedule));
  const Timeline timeline = simulate(program, spread({}, schedule));
  for (auto _ : state) benchmark::DoNotOptimize(analyze(schedule, program, timeline));
  per_item(state, program.size());
}
BENCHMARK(BM_Analyze)->Unit(benchmark::kMillisecond);

/// The planner's inner loop: all verbs on a small shape.
void BM_WholeWalkSmall(benchmark::State& state) {
  const ScheduleDef& def = find_schedule("1f1b");
  for (auto _ : state) {
    const Schedule schedule = build_schedule(def, make_request(8, 1, 64));
    const Program program = std::get<Program>(lower(schedule));
    const Timeline timeline = simulate(program, spread({}, schedule));
    benchmark::DoNotOptimize(analyze(schedule, program, timeline));
  }
  per_item(state, 1);
}
BENCHMARK(BM_WholeWalkSmall)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace bubblescope::tests

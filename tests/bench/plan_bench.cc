// The number of configurations that `plan` evaluates per second and core: each is built, lowered,
// timed and analyzed, from its flags to its row of the table.
#include <benchmark/benchmark.h>

#include <optional>
#include <string>

#include "exec/runtime/keep_memory.h"
#include "sim/model/schedule_def.h"
#include "tools/plan/model_evaluator.h"
#include "tools/plan/what_if.h"

namespace bubblescope::tests {
namespace {

Configuration eight_ranks(const std::string& schedule) {
  const ScheduleDef& def = find_schedule(schedule);
  Configuration configuration;
  configuration.schedule = schedule;
  configuration.shape.ranks = 8;
  configuration.shape.chunks = def.implied_chunks.value_or(2);
  configuration.shape.microbatches = 64;
  return configuration;
}

/// The claim is 20,000 items per second on an idle core, for 1f1b, zb-h1, interleaved and zb-v.
void plan(benchmark::State& state, const std::string& schedule) {
  tools::PredictOptions options;
  options.cost.uniform.message = 100'000;
  const tools::WhatIf what_if(tools::PredictInputs(options), false);
  exec::keep_freed_memory();  // as `plan` does
  const Configuration configuration = eight_ranks(schedule);
  for (auto _ : state) benchmark::DoNotOptimize(what_if.evaluate(configuration));
  state.SetItemsProcessed(state.iterations());
}

/// Whether an evaluator keeps what configurations share, as in `plan`, or each gets a new one.
enum class Sharing : bool { kAfresh, kKept };

/// The same for a model: layer splits, ranks and recomputation differ between configurations; the
/// order and the program do not.
void plan_model(benchmark::State& state, const std::string& schedule, Sharing sharing) {
  tools::PredictOptions options;
  options.model.model = "llama3-70b";
  tools::ModelAxes axes;
  axes.gpus = 64;
  axes.global_batch = 64;
  axes.schedules = {schedule};
  axes.ranks = {8};
  axes.chunks = {find_schedule(schedule).implied_chunks.value_or(2)};
  axes.tensor = {4, 8};
  axes.micro_batch_sizes = {1};
  exec::keep_freed_memory();
  const tools::ModelPlanner planner(tools::read_inputs(options, {}), axes);
  const std::vector<Configuration> configurations = planner.configurations();
  std::int64_t tried = 0;
  for (auto _ : state) {
    std::optional<tools::ModelEvaluator> evaluator;
    for (const Configuration& configuration : configurations) {
      if (!evaluator || sharing == Sharing::kAfresh) evaluator.emplace(planner);
      tried += evaluator->evaluate(configuration).was_tried() ? 1 : 0;
    }
  }
  state.SetItemsProcessed(tried);
}

/// The schedules of `--schedules all`, by name, because the registry is not filled yet when this
/// runs.
const bool kRegistered = [] {
  for (const char* name :
       {"1f1b", "bfs", "bpipe", "chimera", "chimera-doubling", "chimera-halving", "dualpipe",
        "dualpipev", "eager-1f1b", "gems", "gpipe", "group-interleaved", "hanayo", "interleaved",
        "interleaved-zb", "naive", "zb-h1", "zb-h2", "zb-v"})
    benchmark::RegisterBenchmark(("BM_Plan/" + std::string(name)).c_str(),
                                 [name](benchmark::State& state) { plan(state, name); })
        ->Unit(benchmark::kMicrosecond);
  for (const char* name : {"1f1b", "interleaved", "zb-v"})
    for (const Sharing sharing : {Sharing::kKept, Sharing::kAfresh}) {
      const char* const group = sharing == Sharing::kKept ? "BM_PlanModel/" : "BM_PlanModelAfresh/";
      benchmark::RegisterBenchmark(
          (group + std::string(name)).c_str(),
          [name, sharing](benchmark::State& state) { plan_model(state, name, sharing); })
          ->Unit(benchmark::kMicrosecond);
    }
  return true;
}();

}  // namespace
}  // namespace bubblescope::tests

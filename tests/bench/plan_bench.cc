// What `plan` evaluates per second and core: a configuration is built, lowered, timed and accounted
// for, from its flags to the row of the table.
#include <benchmark/benchmark.h>

#include <string>

#include "sim/model/schedule_def.h"
#include "tools/what_if.h"

namespace bubblescope {
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

/// The claim is 10,000 items a second on an idle core, for each of them.
void plan(benchmark::State& state, const std::string& schedule) {
  PredictOptions options;
  options.cost.uniform.message = 100'000;
  const WhatIf what_if(options, false);
  const Configuration configuration = eight_ranks(schedule);
  for (auto _ : state) benchmark::DoNotOptimize(what_if.evaluate(configuration));
  state.SetItemsProcessed(state.iterations());
}

/// Those of `--schedules all`; names, because the registry is not filled yet when this runs.
const bool kRegistered = [] {
  for (const char* name : {"1f1b",
                           "bfs",
                           "bpipe",
                           "chimera",
                           "chimera-doubling",
                           "chimera-halving",
                           "dualpipe",
                           "dualpipev",
                           "eager-1f1b",
                           "gems",
                           "gpipe",
                           "group-interleaved",
                           "hanayo",
                           "interleaved",
                           "interleaved-zb",
                           "naive",
                           "pipedream-vertical",
                           "zb-h1",
                           "zb-h2",
                           "zb-v"})
    benchmark::RegisterBenchmark(("BM_Plan/" + std::string(name)).c_str(),
                                 [name](benchmark::State& state) { plan(state, name); })
        ->Unit(benchmark::kMicrosecond);
  return true;
}();

}  // namespace
}  // namespace bubblescope

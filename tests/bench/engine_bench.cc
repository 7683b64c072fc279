// Benchmarks of the event loop with everything shared, and of batches of scenarios.
#include <benchmark/benchmark.h>

#include "sim/engine/simulate_batch.h"
#include "sim/engine/simulate_shared.h"
#include "sim/ir/lower.h"
#include "sim/model/noise.h"
#include "sim/model/schedule_def.h"
#include "tests/bench/bench_schedules.h"
#include "tests/support/as_written.h"

namespace bubblescope::tests {
namespace {

/// Two nodes with alternating ranks, so that every message passes both NICs.
Cluster alternating_nodes(std::int32_t ranks) {
  Cluster cluster;
  for (std::int32_t rank = 0; rank < ranks; ++rank) cluster.node_of_rank.push_back(rank % 2);
  cluster.within_node = cluster.between_nodes = {5'000, {{0, 400}}};
  cluster.message_bytes = 1 << 20;
  cluster.devices = {{"nic 0", {}, rate_of(400), Scope::kBetweenNodes},
                     {"nic 1", {}, rate_of(400), Scope::kBetweenNodes}};
  for (std::int32_t rank = 0; rank < ranks; ++rank)
    cluster.devices[static_cast<std::size_t>(rank % 2)].ranks.push_back(rank);
  return cluster;
}

/// An event is the end of an instruction or the departure of a message.
void BM_SharedSimulation(benchmark::State& state) {
  const auto ranks = static_cast<std::int32_t>(state.range(0));
  const ValidSchedule schedule = schedule_of("1f1b", ranks, 1, 512);
  const Program program = std::get<Program>(lower(schedule));
  const Traffic traffic =
      route_messages(program, price(program, spread({}, schedule)), alternating_nodes(ranks));
  const SharedSimulator simulator(program, traffic);
  for (auto _ : state) benchmark::DoNotOptimize(simulator.run(traffic.fixed));
  state.SetItemsProcessed(state.iterations() *
                          static_cast<std::int64_t>(program.size() + traffic.flows.size()));
}
BENCHMARK(BM_SharedSimulation)->Arg(4)->Arg(8)->Arg(16)->Arg(64)->Unit(benchmark::kMillisecond);

/// Runs 1000 seeds; an item is an instruction in a scenario. Messages take time, so that they are
/// noisy.
void time_noise(benchmark::State& state, const Noise& noise) {
  constexpr std::size_t kSeeds = 1000;
  const ValidSchedule schedule = schedule_of("1f1b", static_cast<std::int32_t>(state.range(0)), 1,
                                             static_cast<std::int32_t>(state.range(1)));
  const Program program = std::get<Program>(lower(schedule));
  UniformCost cost;
  cost.message = 100'000;
  const std::vector<Nanos> durations = price(program, spread(cost, schedule));
  for (auto _ : state) {
    const NoiseModel model(program, durations, noise);
    benchmark::DoNotOptimize(simulate_batches(
        program, kSeeds, [&](std::size_t block) { return NoisyBatch(model, block); }));
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(program.size() * kSeeds));
}

void BM_Jitter(benchmark::State& state) {
  Noise noise;
  noise.op_jitter = 0.05;
  noise.message_jitter = 0.2;
  time_noise(state, noise);
}
BENCHMARK(BM_Jitter)->Args({8, 64})->Args({64, 512})->Unit(benchmark::kMillisecond);

void BM_AllNoise(benchmark::State& state) {
  Noise noise;
  noise.op_jitter = 0.05;
  noise.message_jitter = 0.2;
  noise.rank_jitter = 0.02;
  noise.sequence_length_jitter = 0.2;
  noise.stragglers = {0.001, 3};
  time_noise(state, noise);
}
BENCHMARK(BM_AllNoise)->Args({8, 64})->Args({64, 512})->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace bubblescope::tests

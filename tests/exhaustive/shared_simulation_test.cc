// The event loop agrees with the dataflow pass to the nanosecond if nothing is shared.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "sim/engine/simulate.h"
#include "sim/engine/simulate_shared.h"
#include "sim/ir/lower.h"
#include "sim/model/schedule_def.h"
#include "tests/support/as_written.h"
#include "tests/support/random_program.h"
#include "tests/support/uncontended.h"

namespace bubblescope::tests {
namespace {

Cluster cluster_of(std::int32_t ranks, std::int32_t per_node) {
  Cluster cluster;
  for (std::int32_t rank = 0; rank < ranks; ++rank) cluster.node_of_rank.push_back(rank / per_node);
  return cluster;
}

/// Links of 8 Gb/s, one byte per nanosecond, within nodes, and of 4 between them.
Cluster with_links(Cluster cluster, Bytes message) {
  cluster.within_node = {3, {{0, 8}}};
  cluster.between_nodes = {7, {{0, 4}}};
  cluster.message_bytes = message;
  return cluster;
}

/// Every node has a NIC of 4 Gb/s in each direction, and a switch of 12 Gb/s for all messages.
Cluster with_devices(Cluster cluster) {
  for (std::int32_t rank = 0; rank < static_cast<std::int32_t>(cluster.node_of_rank.size());
       ++rank) {
    const auto node = static_cast<std::size_t>(cluster.node_of_rank[rank]);
    if (cluster.devices.size() < 2 * (node + 1)) {
      cluster.devices.push_back({"nic", {}, rate_of(4), Scope::kBetweenNodes});
      cluster.devices.push_back({"switch", {}, rate_of(12), Scope::kAll, true});
    }
    cluster.devices[2 * node].ranks.push_back(rank);
    cluster.devices[2 * node + 1].ranks.push_back(rank);
  }
  return cluster;
}

/// Whether two flows are ever on one resource at the same time.
bool any_shared(const Traffic& traffic, const Timeline& timeline) {
  for (const Flow& first : traffic.flows)
    for (const Flow& second : traffic.flows) {
      if (first.instruction >= second.instruction) continue;
      const auto begin = [&](const Flow& flow) {
        return timeline.start[flow.instruction] + traffic.fixed[flow.instruction];
      };
      if (begin(first) >= timeline.end[second.instruction] ||
          begin(second) >= timeline.end[first.instruction])
        continue;
      const auto path = traffic.path(first.path);
      for (const std::uint32_t resource : traffic.path(second.path))
        if (std::find(path.begin(), path.end(), resource) != path.end()) return true;
    }
  return false;
}

TEST(SharedSimulation, IsTheDataflowPassWhereNothingFlows) {
  std::mt19937 random(20240608);
  for (int round = 0; round < 1000; ++round) {
    const Program program = random_program(random);
    Traffic traffic;
    traffic.fixed = random_durations(program, random);
    const Timeline expected = simulate(program, traffic.fixed);
    const Timeline found = simulate_shared(program, traffic).timeline;
    ASSERT_EQ(found.start, expected.start) << "round " << round;
    ASSERT_EQ(found.end, expected.end) << "round " << round;
  }
}

// Some of the random programs share resources and some do not; those that do can only take longer,
// because a share is never more than the whole.
TEST(SharedSimulation, IsTheDataflowPassIfNoFlowsMeetAndNeverShorter) {
  std::mt19937 random(20240609);
  int alone = 0;
  int shared = 0;
  for (int round = 0; round < 2000; ++round) {
    const Program program = random_program(random);
    const Cluster cluster =
        with_devices(with_links(cluster_of(program.ranks, 2), static_cast<Bytes>(random() % 40)));
    const Traffic traffic = route_messages(program, random_durations(program, random), cluster);
    const Timeline expected = simulate(program, uncontended_durations(traffic));
    const Timeline found = simulate_shared(program, traffic).timeline;
    if (any_shared(traffic, expected)) {
      ++shared;
      for (InstructionId id = 0; id < program.size(); ++id)
        ASSERT_GE(found.end[id], expected.end[id]) << "round " << round;
      continue;
    }
    ++alone;
    ASSERT_EQ(found.start, expected.start) << "round " << round;
    ASSERT_EQ(found.end, expected.end) << "round " << round;
  }
  EXPECT_GT(alone, 200);
  EXPECT_GT(shared, 200);
}

/// A small shape that most schedules accept.
Program program_of(const ScheduleDef& def, P2pMode mode) {
  ScheduleRequest request;
  request.shape.ranks = 4;
  request.shape.microbatches = 8;
  request.shape.chunks = def.implied_chunks.value_or(def.name.starts_with("interleaved") ? 2 : 1);
  if (def.slices_sequences) request.shape.slices = 4;
  LowerOptions options;
  options.mode = mode;
  std::variant<Program, Deadlock> lowered = lower(build_schedule(def, request), options);
  return std::holds_alternative<Program>(lowered) ? std::get<Program>(std::move(lowered))
                                                  : Program{};
}

// Compute ops are far longer than any message: a rank's next message to the same peer leaves after
// the previous one has arrived. Only a queue that was blocked may send two at once.
TEST(SharedSimulation, IsTheDataflowPassOnEveryScheduleWithLinksThatAreNeverFull) {
  for (const ScheduleDef& def : Registry<ScheduleDef>::instance().all())
    for (const P2pMode mode : {P2pMode::kDataflow, P2pMode::kFifo, P2pMode::kBatched}) {
      const Program program = program_of(def, mode);
      std::vector<Nanos> durations(program.size(), 0);
      for (InstructionId id = 0; id < program.size(); ++id)
        if (is_compute(program.instructions[id].op.kind)) durations[id] = 1000 + id;
      if (program.size() == 0) continue;  // it deadlocks
      const Traffic traffic = route_messages(program, durations, with_links(cluster_of(4, 2), 40));
      const Timeline expected = simulate(program, uncontended_durations(traffic));
      const bool shared = any_shared(traffic, expected);
      // The messages of fused forwards leave together.
      const bool joint = def.name.starts_with("chimera-");
      ASSERT_TRUE(!shared || joint || mode != P2pMode::kDataflow) << def.name;
      if (shared) continue;
      const Timeline found = simulate_shared(program, traffic).timeline;
      ASSERT_EQ(found.start, expected.start) << def.name;
      ASSERT_EQ(found.end, expected.end) << def.name;
    }
}

TEST(SharedSimulation, IsTheSameTwice) {
  std::mt19937 random(5);
  for (int round = 0; round < 50; ++round) {
    const Program program = random_program(random);
    const Cluster cluster = with_devices(with_links(cluster_of(program.ranks, 2), 30));
    const Traffic traffic = route_messages(program, random_durations(program, random), cluster);
    const SharedSimulator simulator(program, traffic);
    const SimulatedRun first = simulator.run(traffic.fixed);
    EXPECT_EQ(first.timeline.end, simulator.run(traffic.fixed).timeline.end);
    EXPECT_EQ(first.timeline.end, simulate_shared(program, traffic).timeline.end);
  }
}

}  // namespace
}  // namespace bubblescope::tests

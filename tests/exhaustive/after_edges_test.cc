// Random schedules with random after edges: the dataflow pass, the event loop and a plain
// interpreter of orders, inputs and edges agree.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "sim/ir/validate.h"
#include "tests/support/as_written.h"
#include "tests/support/order_interpreter.h"
#include "tests/support/random_schedule.h"

namespace bubblescope::tests {
namespace {

constexpr unsigned kSeed = 20261123;
std::vector<Op> all_ops(const Schedule& schedule) {
  std::vector<Op> ops;
  for (const RankOrder& order : schedule.order)
    for (Op op : order) {
      op.pairing = Pairing::kAlone;
      ops.push_back(op);
    }
  return ops;
}

/// Up to twelve edges between any two ops. Few of them fit together.
Schedule with_any_edges(Schedule schedule, std::mt19937& random) {
  const std::vector<Op> ops = all_ops(schedule);
  for (auto count = 1 + random() % 12; count > 0; --count)
    schedule.after.push_back({ops[random() % ops.size()], ops[random() % ops.size()]});
  return schedule;
}

/// Edges that the order of ends of the plain schedule allows.
Schedule with_sound_edges(Schedule schedule, std::mt19937& random) {
  const OpEnds ends = *run_orders(schedule);
  const std::vector<Op> ops = all_ops(schedule);
  for (auto count = 1 + random() % 12; count > 0; --count) {
    Op op = ops[random() % ops.size()];
    Op awaited = ops[random() % ops.size()];
    if (ends.at(to_string(op)) == ends.at(to_string(awaited))) continue;
    if (ends.at(to_string(op)) < ends.at(to_string(awaited))) std::swap(op, awaited);
    const AfterEdge edge{op, awaited};
    if (std::find(schedule.after.begin(), schedule.after.end(), edge) == schedule.after.end())
      schedule.after.push_back(edge);
  }
  return schedule;
}

TEST(AfterEdges, TimeAsAPlainInterpreterDoes) {
  std::mt19937 random(kSeed);
  std::size_t edges = 0;
  for (std::uint32_t round = 0; round < 1500 && !HasFailure(); ++round) {
    SCOPED_TRACE("seed " + std::to_string(kSeed) + ", round " + std::to_string(round));
    const Schedule schedule = with_sound_edges(random_schedule(round), random);
    edges += schedule.after.size();
    expect_times_of_orders(schedule);
  }
  EXPECT_GT(edges, 1500u);
}

// An edge to an op later on the same rank, to itself or twice is a problem; every other set of
// edges deadlocks exactly if the interpreter gets stuck.
TEST(AfterEdges, DeadlockExactlyWhereAPlainInterpreterIsStuck) {
  std::mt19937 random(kSeed + 1);
  int stuck = 0;
  int sound = 0;
  for (std::uint32_t round = 0; round < 3000; ++round) {
    const std::string what = "seed " + std::to_string(kSeed) + ", round " + std::to_string(round);
    const Schedule schedule = with_any_edges(random_schedule(round), random);
    const bool ends = run_orders(schedule).has_value();
    if (!find_problems(schedule).empty()) continue;
    const bool is_program = std::holds_alternative<Program>(lower(schedule, {Overlap::kSerial}));
    ASSERT_EQ(is_program, ends) << what;
    ++(ends ? sound : stuck);
  }
  EXPECT_GT(stuck, 100);
  EXPECT_GT(sound, 100);
}

TEST(AfterEdges, DeadlockInAModeExactlyIfItsProgramHasACycle) {
  std::mt19937 random(kSeed + 2);
  for (std::uint32_t round = 0; round < 400 && !HasFailure(); ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    const Schedule schedule = with_sound_edges(random_schedule(round), random);
    for (const ReceivePosting posting : {ReceivePosting::kAsap, ReceivePosting::kDeferred}) {
      LowerOptions options;
      options.posting = posting;
      expect_verdicts_of_programs(schedule, options);
    }
  }
}

}  // namespace
}  // namespace bubblescope::tests

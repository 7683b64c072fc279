// Compares the lower bound with every possible order: it is never above any makespan and the same
// for all orders, for every overlap and message mode.
#include "sim/analysis/lower_bound.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <optional>
#include <tuple>

#include "sim/engine/simulate.h"
#include "sim/ir/depend.h"
#include "sim/ir/lower.h"
#include "tests/support/as_written.h"
#include "tests/support/random_schedule.h"

namespace bubblescope::tests {
namespace {

/// The ops to be ordered.
struct Shapes {
  std::vector<std::int32_t> rank_of_stage;
  std::int32_t microbatches;
  bool split;  ///< I and W, or B
};

Schedule unordered(const Shapes& shapes) {
  Schedule schedule;
  schedule.name = "any";
  schedule.rank_of_stage = shapes.rank_of_stage;
  schedule.shape.ranks =
      1 + *std::max_element(shapes.rank_of_stage.begin(), shapes.rank_of_stage.end());
  schedule.shape.chunks = schedule.stages() / schedule.shape.ranks;
  schedule.shape.microbatches = shapes.microbatches;
  schedule.order.resize(static_cast<std::size_t>(schedule.shape.ranks));
  for (std::int32_t stage = 0; stage < schedule.stages(); ++stage)
    for (std::int32_t microbatch = 0; microbatch < shapes.microbatches; ++microbatch) {
      RankOrder& ops =
          schedule.order[static_cast<std::size_t>(schedule.rank_of(stage, microbatch))];
      ops.push_back(forward(stage, microbatch));
      if (!shapes.split) ops.push_back(backward(stage, microbatch));
      if (shapes.split) ops.push_back(input_grad(stage, microbatch));
      if (shapes.split) ops.push_back(weight_grad(stage, microbatch));
    }
  return schedule;
}

/// Every order of one rank's ops in which no op comes before one of the same rank that it needs.
std::vector<RankOrder> orders_of_rank(const Schedule& schedule, RankOrder ops) {
  const auto less = [](const Op& left, const Op& right) {
    return std::tuple(left.stage, left.microbatch, left.kind) <
           std::tuple(right.stage, right.microbatch, right.kind);
  };
  const ValueIndex index(schedule);
  std::sort(ops.begin(), ops.end(), less);
  std::vector<RankOrder> orders;
  do {
    std::vector<bool> is_later(index.size(), false);
    for (const Op& op : ops) is_later[index(op)] = true;
    const bool legal = std::all_of(ops.begin(), ops.end(), [&](const Op& op) {
      is_later[index(op)] = false;
      for (const Value& value : collect_needs(schedule, op))
        if (is_later[index(value)]) return false;
      return true;
    });
    if (legal) orders.push_back(ops);
  } while (std::next_permutation(ops.begin(), ops.end(), less));
  return orders;
}

/// Calls `see` with every order of all ranks.
void for_every_order(Schedule schedule, const std::function<void(const Schedule&)>& see) {
  std::vector<std::vector<RankOrder>> choices;
  for (const RankOrder& ops : schedule.order) choices.push_back(orders_of_rank(schedule, ops));
  std::vector<std::size_t> at(choices.size(), 0);
  for (;;) {
    for (std::size_t rank = 0; rank < at.size(); ++rank)
      schedule.order[rank] = choices[rank][at[rank]];
    see(schedule);
    std::size_t rank = 0;
    while (rank < at.size() && ++at[rank] == choices[rank].size()) at[rank++] = 0;
    if (rank == at.size()) return;
  }
}

/// Costs that differ between any two stages.
CostModel costs_of(std::size_t stages, Nanos message, Nanos slope) {
  CostModel costs;
  costs.message = message;
  for (std::size_t stage = 0; stage < stages; ++stage) {
    const auto more = static_cast<Nanos>(stage) * slope;
    costs.stages.push_back({10 + more, 21 + 2 * more, 11 + more, 10 + more});
  }
  return costs;
}

struct Best {
  Nanos makespan = std::numeric_limits<Nanos>::max();  ///< the shortest of all orders
  std::optional<Nanos> bound;
};

/// Also checks that the bound is the same for every order.
Best best_of_all(const Shapes& shapes, const CostModel& costs) {
  Best best;
  for_every_order(unordered(shapes), [&](const Schedule& schedule) {
    const std::variant<Program, Deadlock> lowered = lower(schedule);
    const auto* program = std::get_if<Program>(&lowered);
    if (!program) return;
    const Timeline timeline = simulate(*program, costs);
    best.makespan =
        std::min(best.makespan, *std::max_element(timeline.end.begin(), timeline.end.end()));
    const Nanos bound = lower_bound(*program, timeline);
    EXPECT_EQ(bound, best.bound.value_or(bound));
    best.bound = bound;
  });
  return best;
}

TEST(LowerBound, IsNeverAboveTheBestOfAllOrders) {
  const Shapes all[] = {{{0, 1}, 1, true},     {{0, 1}, 2, false},      {{0, 1}, 2, true},
                        {{0, 1, 2}, 2, false}, {{0, 1, 1, 0}, 1, true}, {{0, 1, 0, 1}, 1, true},
                        {{0, 1}, 3, false}};
  int reached = 0;
  for (const Shapes& shapes : all)
    for (const Nanos message : {0, 4, 30})
      for (const Nanos slope : {0, 7}) {
        const Best best =
            best_of_all(shapes, costs_of(shapes.rank_of_stage.size(), message, slope));
        EXPECT_LE(*best.bound, best.makespan)
            << shapes.rank_of_stage.size() << " stages, " << message;
        if (*best.bound == best.makespan) ++reached;
      }
  EXPECT_GE(reached, 20);  // of 42 cases: a bound that is always loose would be useless
}

// The bound depends on the ops and the data, not on what they wait for.
TEST(LowerBound, IsTheSameUnderEveryOverlapAndMessageMode) {
  int compared = 0;
  for (std::uint32_t seed = 0; seed < 300; ++seed) {
    const Schedule schedule = random_schedule(seed);
    const CostModel costs = costs_of(static_cast<std::size_t>(schedule.stages()), 7, 3);
    std::optional<Nanos> expected;
    for (const Overlap overlap : {Overlap::kSerial, Overlap::kAtomic, Overlap::kFused})
      for (const Named<P2pMode>& mode : kP2pModes) {
        const std::variant<Program, Deadlock> lowered =
            lower(schedule, {.overlap = overlap, .mode = mode.choice});
        const auto* program = std::get_if<Program>(&lowered);
        if (!program) continue;
        const Nanos bound = lower_bound(*program, simulate(*program, costs));
        if (!expected) expected = bound;
        EXPECT_EQ(bound, *expected)
            << "seed " << seed << ", " << mode.name << ", overlap " << static_cast<int>(overlap);
        ++compared;
      }
  }
  EXPECT_GT(compared, 1000);
}

}  // namespace
}  // namespace bubblescope::tests

// Optimal search results equal the best of all orders, on small problems with every placement.
// Bounds also hold on larger problems.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "schedules/search/deadline_test.h"
#include "schedules/search/exact_search.h"
#include "schedules/search/mixed_backward.h"
#include "schedules/search/schedule_search.h"
#include "schedules/search/steady_state.h"
#include "sim/ir/validate.h"
#include "tests/support/measured_schedule.h"
#include "tests/support/order_oracle.h"
#include "tests/support/sanitized.h"
#include "tests/support/span_oracle.h"

namespace bubblescope::tests {
namespace {

constexpr std::int64_t kUnit = 1'000'000;  ///< caps are in millionths
constexpr unsigned kSeed = 20240711;

struct Small {
  schedules::PlacementChoice placement;
  std::int32_t ranks;
  std::int32_t chunks;
  std::int32_t microbatches;
};

/// Up to 24 ops, which the oracle can enumerate quickly.
constexpr Small kSmall[] = {{schedules::PlacementChoice::kLinear, 1, 1, 4},
                            {schedules::PlacementChoice::kLinear, 2, 1, 2},
                            {schedules::PlacementChoice::kLinear, 2, 1, 3},
                            {schedules::PlacementChoice::kLinear, 2, 1, 4},
                            {schedules::PlacementChoice::kLinear, 3, 1, 2},
                            {schedules::PlacementChoice::kV, 1, 2, 2},
                            {schedules::PlacementChoice::kV, 2, 2, 1},
                            {schedules::PlacementChoice::kV, 2, 2, 2},
                            {schedules::PlacementChoice::kInterleaved, 2, 2, 1},
                            {schedules::PlacementChoice::kInterleaved, 2, 2, 2},
                            {schedules::PlacementChoice::kWave, 2, 4, 1}};

Shape shape_of(const Small& small) {
  Shape shape;
  shape.ranks = small.ranks;
  shape.chunks = small.chunks;
  shape.microbatches = small.microbatches;
  return shape;
}

class Draw {
 public:
  std::int64_t between(std::int64_t least, std::int64_t most) {
    return least + static_cast<std::int64_t>(engine_() % static_cast<unsigned>(most - least + 1));
  }

 private:
  std::mt19937 engine_{kSeed};
};

ScheduleRequest drawn(Draw& draw, const Small& small) {
  ScheduleRequest request;
  request.shape = shape_of(small);
  request.cost.per = UniformCost::Per::kChunk;
  request.cost.forward = draw.between(1, 9);
  request.cost.input_grad = draw.between(1, 9);
  request.cost.weight_grad = draw.between(1, 9);
  if (draw.between(0, 3) == 0)
    request.cost.backward = draw.between(1, request.cost.input_grad + request.cost.weight_grad);
  request.cost.message = draw.between(0, 4);
  const std::int64_t at_gradient = draw.between(0, 2) * kUnit / 2;
  request.memory.unit = {kUnit, -at_gradient, at_gradient - kUnit};
  const std::int64_t room = draw.between(0, 4) * kUnit / 2;
  request.memory.cap.assign(static_cast<std::size_t>(small.ranks), small.chunks * kUnit + room);
  return request;
}

/// The best order with split backwards, or with full ones if it is shorter; excludes mixes.
Nanos shortest(const ScheduleRequest& request, const schedules::SearchGoal& goal) {
  Nanos least = 0;
  for (const bool fused : {false, true})
    for (const auto& placement : schedules::placements(goal.placement, request.shape, true).tried) {
      if (fused && !request.cost.backward) continue;
      schedules::SearchProblem problem = schedules::search_problem(request, placement, fused);
      problem.from_step_start = goal.objective == schedules::Objective::kMakespan;
      const Nanos found = shortest_by_trying(problem);
      least = least == 0 ? found : std::min(least, found);
    }
  return least;
}

bool mixing_can_pay(const ScheduleRequest& request) {
  return request.cost.full_backward() < request.cost.input_grad + request.cost.weight_grad;
}

TEST(Search, ProvesWhatTryingEverythingFinds) {
  Draw draw;
  for (int turn = 0; turn < 8; ++turn)
    for (const Small& small : kSmall) {
      const ScheduleRequest request = drawn(draw, small);
      schedules::SearchGoal goal;
      goal.placement = small.placement;
      goal.objective =
          turn % 2 == 0 ? schedules::Objective::kMakespan : schedules::Objective::kSpan;
      const schedules::FoundSchedule found = schedules::search_schedule(request, goal);
      SCOPED_TRACE("seed " + std::to_string(kSeed) + " turn " + std::to_string(turn) +
                   " p=" + std::to_string(small.ranks) + " v=" + std::to_string(small.chunks) +
                   " m=" + std::to_string(small.microbatches));
      ASSERT_TRUE(validate(found.schedule).empty());
      // A mix of full and split backwards may be shorter than both.
      ASSERT_LE(found.value, shortest(request, goal));
      ASSERT_TRUE(found.is_optimal() || mixing_can_pay(request));
      if (!mixing_can_pay(request)) {
        ASSERT_EQ(found.value, shortest(request, goal));
      }
    }
}

/// Every order of two micro-batches on one stage, with full and split backwards, as tokens.
void add_orders(std::vector<std::vector<schedules::Token>>& found,
                std::vector<schedules::Token> begun, std::array<int, 3> done, int split) {
  if (done[0] == 2 && done[1] == 2 && done[2] == split) found.push_back(begun);
  const auto next = [&](schedules::Token token, std::array<int, 3> now, int now_split) {
    std::vector<schedules::Token> longer = begun;
    longer.push_back(token);
    add_orders(found, std::move(longer), now, now_split);
  };
  if (done[0] < 2) next(0, {done[0] + 1, done[1], done[2]}, split);
  if (done[1] < done[0]) {
    next(1, {done[0], done[1] + 1, done[2]}, split + 1);
    next(1 + schedules::kWholeBackward, {done[0], done[1] + 1, done[2]}, split);
  }
  if (done[2] < split) next(2, {done[0], done[1], done[2] + 1}, split);
}

// Two ranks, two micro-batches: the test times every pair of orders. The search must find the best
// mix and prove that it is the best.
TEST(Search, ProvesTheBestMixOfBackwards) {
  std::vector<std::vector<schedules::Token>> orders;
  add_orders(orders, {}, {}, 0);
  Draw draw;
  for (int turn = 0; turn < 25; ++turn) {
    ScheduleRequest request = drawn(draw, {schedules::PlacementChoice::kLinear, 2, 1, 2});
    const Nanos halves = request.cost.input_grad + request.cost.weight_grad;
    request.cost.backward = draw.between((halves + 1) / 2, halves - 1);
    request.memory.cap = {(1 + draw.between(0, 1)) * kUnit, (1 + draw.between(0, 1)) * kUnit};
    schedules::MixedProblem mixed{schedules::search_problem(request, {0, 1}),
                                  schedules::search_problem(request, {0, 1}, true)};
    mixed.split.from_step_start = mixed.full.from_step_start = true;
    std::optional<Nanos> least;
    for (const std::vector<schedules::Token>& first : orders)
      for (const std::vector<schedules::Token>& second : orders)
        if (const std::optional<Nanos> value = schedules::measure_mixed(mixed, {first, second}))
          least = std::min(least.value_or(*value), *value);
    schedules::SearchGoal goal;
    goal.effort = 10'000'000;
    const schedules::FoundSchedule found = schedules::search_schedule(request, goal);
    SCOPED_TRACE("seed " + std::to_string(kSeed) + " turn " + std::to_string(turn));
    EXPECT_TRUE(validate(found.schedule).empty());
    EXPECT_EQ(simulate_times(found.schedule, request.cost).makespan, found.value);
    EXPECT_EQ(found.value, *least);
    EXPECT_TRUE(found.is_optimal());
  }
}

// Full backwards are shorter, but split ones let rank 0 start its own backwards sooner, so the best
// step contains both.
TEST(Search, MixesFullAndSplitBackwards) {
  ScheduleRequest request;
  request.shape = shape_of({schedules::PlacementChoice::kLinear, 2, 1, 4});
  request.cost.forward = 10;
  request.cost.input_grad = 12;
  request.cost.weight_grad = 9;
  request.cost.backward = 17;
  schedules::SearchGoal goal;
  goal.effort = 10'000'000;
  const schedules::FoundSchedule found = schedules::search_schedule(request, goal);
  bool has_full = false;
  bool has_split = false;
  for (const RankOrder& ops : found.schedule.order)
    for (const Op& op : ops) {
      has_full |= op.kind == OpKind::kBackward;
      has_split |= op.kind == OpKind::kInputGrad;
    }
  EXPECT_TRUE(has_full && has_split);
}

// Runs the search over a range of caps, without a time limit.
TEST(Search, FindsNothingLongerWithMoreMemory) {
  Draw draw;
  for (int turn = 0; turn < (kSanitized ? 2 : 4); ++turn) {
    const bool v = turn % 2 == 1;
    const Small small{v ? schedules::PlacementChoice::kV : schedules::PlacementChoice::kLinear,
                      v ? 3 : 5, v ? 2 : 1, v ? 5 : 9};
    ScheduleRequest request = drawn(draw, small);
    request.cost.backward.reset();
    request.memory.unit = {kUnit, 0, -kUnit};
    schedules::SearchGoal goal;
    goal.placement = small.placement;
    goal.effort = 2'000'000;
    Nanos before = 0;
    for (std::int32_t cap = small.chunks; cap <= 2 * small.ranks * small.chunks; ++cap) {
      request.memory.cap.assign(static_cast<std::size_t>(small.ranks), cap * kUnit);
      const Nanos value = schedules::search_schedule(request, goal).value;
      if (before > 0) {
        EXPECT_LE(value, before) << "seed " << kSeed << " turn " << turn << " cap " << cap;
      }
      before = value;
    }
  }
}

// The whole step can be repeated, so a period is at most the step's time per micro-batch.
TEST(Search, PeriodIsNoLongerThanTheStepsShare) {
  ScheduleRequest request;
  request.shape = shape_of({schedules::PlacementChoice::kLinear, 8, 1, 32});
  request.cost.forward = request.cost.input_grad = 100;
  request.cost.weight_grad = 50;
  request.memory.cap.assign(8, 4 * kUnit);
  schedules::SearchGoal goal;
  goal.effort = 3'000'000;
  const Nanos step = schedules::search_schedule(request, goal).value;
  goal.objective = schedules::Objective::kPeriod;
  const schedules::FoundSchedule found = schedules::search_schedule(request, goal);
  EXPECT_LE(found.value, (step + 31) / 32);
  EXPECT_LE(found.bound, found.value);
}

// The memory of a device is a cap. Here it has room for the bytes of two of the three
// micro-batches.
TEST(Search, KeepsWithinTheBytesOfDevices) {
  ScheduleRequest request;
  request.shape = shape_of({schedules::PlacementChoice::kLinear, 3, 1, 5});
  schedules::SearchGoal goal;
  goal.find_memory = [](const std::vector<std::int32_t>&) {
    MemoryModel memory;
    memory.activation_bytes = {{300, -100, -200}, {200, -100, -100}, {100, 0, -100}};
    memory.cap_bytes = {650, 650, 650};
    return memory;
  };
  const schedules::FoundSchedule found = schedules::search_schedule(request, goal);
  EXPECT_LE(walk_peaks(found.schedule, MemoryDelta{300, -100, -200})[0], 650);
  EXPECT_GT(found.bound, schedules::search_schedule(request, {}).bound);
}

// The oracle for unit ops is an independent program that advances through time.
TEST(Search, ReachesTheUnitOptimaUnderCaps) {
  for (std::int32_t ranks = 2; ranks <= 4; ++ranks)
    for (std::int32_t microbatches = 2; microbatches <= 5; ++microbatches)
      for (std::int32_t cap = 1; cap <= 4; ++cap) {
        ScheduleRequest request;
        request.shape = shape_of({schedules::PlacementChoice::kLinear, ranks, 1, microbatches});
        request.memory.cap.assign(static_cast<std::size_t>(ranks), cap * kUnit);
        schedules::SearchGoal goal;
        goal.objective = schedules::Objective::kSpan;
        const schedules::FoundSchedule found = schedules::search_schedule(request, goal);
        SCOPED_TRACE("p=" + std::to_string(ranks) + " m=" + std::to_string(microbatches) + " cap " +
                     std::to_string(cap));
        EXPECT_EQ(found.value, kUnit * shortest_unit_span(ranks, microbatches, cap));
        EXPECT_TRUE(found.is_optimal());
      }
}

// A free placement may choose any assignment of stages, so no other placement can be better. Two
// ranks with two chunks have three assignments that differ in more than names.
TEST(Search, FreePlacementIsTheBestOfAllAssignments) {
  Draw draw;
  for (int turn = 0; turn < random_cases(10); ++turn) {
    const ScheduleRequest request = drawn(draw, {schedules::PlacementChoice::kFree, 2, 2, 2});
    schedules::SearchGoal goal;
    goal.placement = schedules::PlacementChoice::kFree;
    ASSERT_EQ(schedules::placements(goal.placement, request.shape, true).tried.size(), 3u);
    const schedules::FoundSchedule found = schedules::search_schedule(request, goal);
    EXPECT_LE(found.value, shortest(request, goal)) << "seed " << kSeed << " turn " << turn;
    if (mixing_can_pay(request)) continue;
    EXPECT_EQ(found.value, shortest(request, goal)) << "seed " << kSeed << " turn " << turn;
    EXPECT_TRUE(found.is_optimal());
  }
}

// Effort is counted in ops, so that a search without a time limit ends the same on any machine.
TEST(Search, TheSameSeedFindsTheSame) {
  ScheduleRequest request;
  request.shape = shape_of({schedules::PlacementChoice::kV, 4, 2, 9});
  request.cost.forward = 3'000'000;
  request.cost.input_grad = 4'000'000;
  request.cost.weight_grad = 2'000'000;
  request.memory.cap.assign(4, 3 * kUnit);
  schedules::SearchGoal goal;
  goal.placement = schedules::PlacementChoice::kV;
  goal.seed = 5;
  goal.effort = 2'000'000;
  const schedules::FoundSchedule first = schedules::search_schedule(request, goal);
  const schedules::FoundSchedule second = schedules::search_schedule(request, goal);
  EXPECT_FALSE(first.is_optimal());  // otherwise the effort would not have ended it
  EXPECT_EQ(first.schedule.order, second.schedule.order);
  EXPECT_EQ(first.bound, second.bound);
}

// With little effort, the schedules that search for themselves may find shorter orders.
TEST(Search, IsNoWorseThanSchedulesThatSearch) {
  for (const std::int32_t microbatches : {9, 15}) {
    ScheduleRequest request;
    request.shape = shape_of({schedules::PlacementChoice::kV, 5, 2, microbatches});
    request.cost.forward = 13;
    request.cost.input_grad = 15;
    request.cost.weight_grad = 8;
    request.cost.message = 1;
    schedules::SearchGoal goal;
    goal.placement = schedules::PlacementChoice::kV;
    goal.effort = 1'000;
    for (const std::int64_t cap : {6, 10}) {  // V-Half holds 6 chunks
      request.memory.cap.assign(5, cap * kUnit);
      for (const char* name : {"v-auto", "v-half"}) {
        const Schedule schedule = build_schedule(find_schedule(name), request);
        const Nanos known = simulate_times(schedule, request.cost).makespan;
        EXPECT_LE(schedules::search_schedule(request, goal).value, known) << name << " cap " << cap;
      }
    }
  }
}

// A bound must hold however early the search ends: half the value of an order must not be provable,
// and the exact search must find nothing below the bound.
TEST(Search, BoundsHoldForLargerSteps) {
  Draw draw;
  for (int turn = 0; turn < random_cases(15); ++turn) {
    const Small small{schedules::PlacementChoice::kV, static_cast<std::int32_t>(draw.between(2, 5)),
                      2, static_cast<std::int32_t>(draw.between(2, 9))};
    const ScheduleRequest request = drawn(draw, small);
    schedules::SearchGoal goal;
    goal.placement = small.placement;
    goal.objective = turn % 2 == 0 ? schedules::Objective::kMakespan : schedules::Objective::kSpan;
    goal.effort = 3'000'000;
    const schedules::FoundSchedule found = schedules::search_schedule(request, goal);
    const Times times = simulate_times(found.schedule, request.cost);
    SCOPED_TRACE("seed " + std::to_string(kSeed) + " turn " + std::to_string(turn));
    EXPECT_EQ(found.value,
              goal.objective == schedules::Objective::kMakespan ? times.makespan : times.max_span);
    EXPECT_LE(found.bound, found.value);
    EXPECT_TRUE(validate(found.schedule).empty());
  }
}

// One stage per rank, F = I = W = 1, room for k micro-batches: rank 0 holds each for at least
// p F + p I + W = 2p+1, so k of them take a period of at least (2p+1)/k; unlimited, a rank's own
// work 3 is the period.
TEST(Search, PeriodIsBoundedByWorkAndByMemory) {
  ScheduleRequest request;
  request.shape = shape_of({schedules::PlacementChoice::kLinear, 4, 1, 40});
  schedules::SearchGoal goal;
  goal.objective = schedules::Objective::kPeriod;
  EXPECT_EQ(schedules::search_schedule(request, goal).value, 3 * kUnit);
  EXPECT_TRUE(schedules::search_schedule(request, goal).is_optimal());
  request.memory.cap.assign(4, kUnit);
  const schedules::FoundSchedule one = schedules::search_schedule(request, goal);
  EXPECT_EQ(one.bound, 9 * kUnit);
  EXPECT_EQ(one.value, 9 * kUnit);
  request.memory.cap.assign(4, 2 * kUnit);
  EXPECT_EQ(schedules::search_schedule(request, goal).bound, 4'500'000);
}

}  // namespace
}  // namespace bubblescope::tests

// The bubbles of schedules that are chosen for small ones, beside 1F1B's: in the shapes for which
// they say that theirs is no larger, it is not, and `list` says of it what is so.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "sim/model/schedule_def.h"
#include "sim/model/schedule_refusal.h"
#include "tests/support/measured_schedule.h"

namespace bubblescope::tests {
namespace {

/// A schedule's bubble in one shape, and 1F1B's.
struct Bubbles {
  ScheduleRequest request;
  Nanos mine = 0;
  Nanos of_1f1b = 0;

  std::int32_t ranks() const { return request.shape.ranks; }
  std::int32_t microbatches() const { return request.shape.microbatches; }
  Nanos forward() const { return request.cost.forward; }
  Nanos backward() const { return request.cost.full_backward(); }
  std::string text() const {
    return "p=" + std::to_string(ranks()) + " v=" + std::to_string(request.shape.chunks) +
           " m=" + std::to_string(microbatches()) + " F=" + std::to_string(forward()) +
           " B=" + std::to_string(backward());
  }
};

/// The time for which the busiest rank is idle. Every rank has the same work.
Nanos measure_bubble(const ScheduleDef& def, const ScheduleRequest& request) {
  const UniformCost& cost = request.cost;
  return simulate_times(build_schedule(def, request), cost).makespan -
         request.shape.microbatches * (cost.forward + cost.full_backward());
}

/// Up to three waves divide these costs evenly.
UniformCost cost_of(Nanos forward, Nanos backward) {
  UniformCost cost;
  cost.forward = forward;
  cost.backward = backward;
  cost.input_grad = cost.weight_grad = backward / 2;
  return cost;
}

std::vector<Bubbles> measure_all(const ScheduleDef& def) {
  std::vector<Bubbles> all;
  for (const UniformCost& cost :
       {cost_of(12, 12), cost_of(12, 18), cost_of(12, 24), cost_of(12, 36), cost_of(12, 60),
        cost_of(24, 12), cost_of(36, 12)})
    for (const std::int32_t waves : {1, 2, 3})
      for (std::int32_t ranks = 2; ranks <= 8; ++ranks)
        for (std::int32_t microbatches = 1; microbatches <= 4 * ranks; ++microbatches) {
          if (waves > 1 && !takes_chunks(def)) continue;
          Bubbles next;
          next.request.shape = {ranks, waves * *def.implied_chunks, microbatches, 1, {}};
          next.request.cost = cost;
          if (!refuse_schedule(def, next.request).empty()) continue;
          next.mine = measure_bubble(def, next.request);
          next.request.shape.chunks = 1;
          next.of_1f1b = measure_bubble(find_schedule("1f1b"), next.request);
          next.request.shape.chunks = waves * *def.implied_chunks;
          all.push_back(next);
        }
  return all;
}

bool is_usual(const Bubbles& bubbles) {
  return bubbles.forward() <= bubbles.backward() && bubbles.backward() <= 2 * bubbles.forward();
}

TEST(SmallBubbles, AreAtMostThatOf1F1BWhereSchedulesSaySo) {
  int schedules = 0;
  for (const ScheduleDef& def : Registry<ScheduleDef>::instance().all()) {
    if (!def.is_at_most_1f1b) continue;
    ++schedules;
    int larger = 0;
    for (const Bubbles& bubbles : measure_all(def)) {
      const bool is_larger = bubbles.mine > bubbles.of_1f1b;
      larger += is_larger ? 1 : 0;
      if (def.is_at_most_1f1b(bubbles.request)) {
        EXPECT_FALSE(is_larger) << def.name << " " << bubbles.text();
      }
    }
    EXPECT_GT(larger, 0) << def.name << " has at most 1F1B's bubble in every shape";
  }
  EXPECT_EQ(schedules, 2);
}

// "At most 1F1B's bubble for m up to p, a W-th of it or less for m = p and 2p, maybe more else."
// With one wave and backwards of two forwards it is more for every other number.
TEST(SmallBubbles, OfHanayoAreAsListed) {
  for (const Bubbles& bubbles : measure_all(find_schedule("hanayo"))) {
    const std::int32_t groups = bubbles.microbatches() / bubbles.ranks();
    const bool is_whole = bubbles.microbatches() % bubbles.ranks() == 0;
    if (is_usual(bubbles) && is_whole && groups <= 2) {
      EXPECT_LE(bubbles.mine * (bubbles.request.shape.chunks / 2), bubbles.of_1f1b)
          << bubbles.text();
    }
    if (bubbles.request.shape.chunks == 2 && bubbles.backward() == 2 * bubbles.forward() &&
        bubbles.microbatches() > bubbles.ranks() && !(is_whole && groups == 2)) {
      EXPECT_GT(bubbles.mine, bubbles.of_1f1b) << bubbles.text();
    }
  }
}

// "Less than two thirds of 1F1B's bubble for m = p, less than all of it for m < p and m = 2p."
TEST(SmallBubbles, OfChimeraAreAsListed) {
  for (const Bubbles& bubbles : measure_all(find_schedule("chimera"))) {
    if (!is_usual(bubbles)) continue;
    if (bubbles.microbatches() == bubbles.ranks()) {
      EXPECT_LT(3 * bubbles.mine, 2 * bubbles.of_1f1b) << bubbles.text();
    }
    if (bubbles.microbatches() < bubbles.ranks() || bubbles.microbatches() == 2 * bubbles.ranks()) {
      EXPECT_LT(bubbles.mine, bubbles.of_1f1b) << bubbles.text();
    }
  }
}

}  // namespace
}  // namespace bubblescope::tests

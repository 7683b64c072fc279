// Tests micro-batches that are numbered through all steps, or through all calls of a rank.
#include "traces/measured/running_microbatches.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "sim/ir/error.h"
#include "sim/ir/timeline.h"
#include "tests/support/chrome_text.h"
#include "traces/files/trace_format.h"
#include "traces/measured/assemble_steps.h"

namespace bubblescope::tests {
namespace {

std::string text(int number) { return std::to_string(number); }

std::string number(int microbatch) { return R"("microbatch":)" + text(microbatch); }

traces::AssembledSteps read(const Events& events) {
  return traces::assemble_steps(traces::parse_trace({"t.json", events.list()}));
}

/// Adds `count` micro-batches of two ranks, all forwards (10 us) first, then all backwards (20 us).
void add_step(Events& events, int origin, int first, int count) {
  const int turn = origin + 10 * (count + 1);
  for (int at = 0; at < count; ++at)
    for (int rank = 0; rank < 2; ++rank)
      events.slice("forward", rank, 0, origin + 10 * (at + rank), 10, number(first + at))
          .slice("backward", rank, 0, turn + 20 * (at + 1 - rank), 20, number(first + at));
}

// A step of two micro-batches takes three forwards and three backwards, 90 us.
TEST(RunningMicrobatches, AreCutWhereNoneIsInFlight) {
  for (const int first : {0, 40}) {
    Events events;
    for (int step = 0; step < 3; ++step) add_step(events, 200 * step, first + 2 * step, 2);
    const traces::AssembledSteps steps = read(events);
    ASSERT_EQ(steps.steps.size(), 3u);
    for (const traces::MeasuredStep& step : steps.steps) {
      EXPECT_EQ(step.schedule->shape.microbatches, 2);
      EXPECT_EQ(compute_makespan(step.timeline), 90'000);
    }
  }
}

// Five runs of four forwards (10 us) on three ranks, 20 us apart. The recording begins and ends
// within a run, so that the first and the last one lack other micro-batches on each rank.
TEST(RunningMicrobatches, OfForwardsAloneAreCutWhereTheirNumbersFall) {
  for (const bool states_stages : {true, false}) {
    Events events;
    for (int run = 0; run < 5; ++run)
      for (int rank = 0; rank < 3; ++rank)
        for (int at = 0; at < 4; ++at) {
          const int start = 80 * run + 10 * (at + rank);
          if (start < 25 || start > 345) continue;
          events.slice(states_stages ? text(rank) + "F" + text(at) : "forward", rank, 0, start, 10,
                       number(at));
        }
    const traces::AssembledSteps steps = read(events);
    ASSERT_EQ(steps.steps.size(), 3u);
    for (const traces::MeasuredStep& step : steps.steps) {
      EXPECT_EQ(step.schedule->shape.microbatches, 4);
      EXPECT_EQ(compute_makespan(step.timeline), 60'000);
    }
    EXPECT_TRUE(steps.remarks.faults.empty()) << steps.remarks.faults.front();
  }
}

constexpr int kSteps = 4;

/// Steps of two micro-batches, as above, without the ops of these micro-batches on these ranks.
Events run_without(const std::vector<int>& lost, const std::vector<int>& ranks,
                   const std::vector<std::string>& names) {
  const auto has = [](const auto& all, const auto& wanted) {
    return std::find(all.begin(), all.end(), wanted) != all.end();
  };
  Events events;
  for (int at = 0; at < 2 * kSteps; ++at)
    for (int rank = 0; rank < 2; ++rank) {
      const int origin = 200 * (at / 2);
      const auto add = [&](const std::string& name, int start, int duration) {
        if (has(lost, at) && has(ranks, rank) && has(names, name)) return;
        events.slice(name, rank, 0, origin + start, duration, number(at));
      };
      add("forward", 10 * (at % 2 + rank), 10);
      add("backward", 30 + 20 * (at % 2 + 1 - rank), 20);
    }
  return events;
}

std::vector<std::int64_t> steps_without(const std::vector<int>& lost, const std::vector<int>& ranks,
                                        const std::vector<std::string>& names) {
  std::vector<std::int64_t> numbers;
  for (const traces::MeasuredStep& step : read(run_without(lost, ranks, names)).steps) {
    EXPECT_EQ(compute_makespan(step.timeline), 90'000) << step.number;
    numbers.push_back(step.number);
  }
  return numbers;
}

TEST(RunningMicrobatches, AreCutWhereRanksLackSome) {
  using Steps = std::vector<std::int64_t>;
  const std::vector<std::string> all{"forward", "backward"};
  EXPECT_EQ(steps_without({2, 3}, {1}, all), (Steps{0, 2, 3}));
  EXPECT_EQ(steps_without({6, 7}, {1}, all), (Steps{0, 1, 2}));
  EXPECT_EQ(steps_without({4}, {1}, all), (Steps{0, 1, 3}));
  EXPECT_EQ(steps_without({3}, {0, 1}, all), (Steps{0, 2, 3}));
  EXPECT_EQ(steps_without({2}, {0, 1}, all), (Steps{0, 2, 3}));
  EXPECT_EQ(steps_without({6, 7}, {0, 1}, {"backward"}), (Steps{0, 1, 2}));
  EXPECT_EQ(steps_without({0, 1}, {0, 1}, {"forward"}), (Steps{1, 2, 3}));
}

/// Forwards of 10 us in three steps of four micro-batches on a rank.
void add_forwards(Events& events, int rank, int apart) {
  for (int at = 0; at < 12; ++at)
    events.slice("forward", rank, 0, apart + 200 * (at / 4) + 10 * (at % 4 + rank), 10,
                 number(at) + R"(,"pp_rank":)" + text(rank));
}

TEST(RunningMicrobatches, OfForwardsAreCutWhereAllHavePassed) {
  Events events;
  for (int rank = 0; rank < 2; ++rank) add_forwards(events, rank, 0);
  const traces::AssembledSteps steps = read(events);
  ASSERT_EQ(steps.steps.size(), 3u);
  for (const traces::MeasuredStep& step : steps.steps) {
    EXPECT_EQ(step.schedule->shape.microbatches, 4);
    EXPECT_EQ(compute_makespan(step.timeline), 50'000);  // five forwards
  }
}

TEST(RunningMicrobatches, OfForwardsWithoutACommonClockAreNamed) {
  traces::ObservedTrace trace;
  for (int rank = 0; rank < 2; ++rank) {
    Events events;
    add_forwards(events, rank, 1'000'000 * rank);
    const std::string list = events.list();
    traces::append(trace, traces::parse_trace({"rank" + text(rank) + ".json", list}));
  }
  try {
    traces::assemble_steps(std::move(trace));
    FAIL();
  } catch (const Error& error) {
    const std::string refusal = error.what();
    EXPECT_NE(refusal.find("forwards alone cannot align clocks"), refusal.npos) << refusal;
    EXPECT_NE(refusal.find("pause before the forwards of micro-batch 4"), refusal.npos) << refusal;
  }
}

// One micro-batch after another may be a step of all of them.
TEST(RunningMicrobatches, OneByOneAreOneStep) {
  Events events;
  for (int at = 0; at < 4; ++at) add_step(events, 100 * at, at, 1);
  const traces::AssembledSteps steps = read(events);
  ASSERT_EQ(steps.steps.size(), 1u);
  EXPECT_EQ(steps.steps[0].schedule->shape.microbatches, 4);
}

TEST(RunningMicrobatches, OfUnlikePartsAreOneStep) {
  Events events;
  add_step(events, 0, 0, 1);
  add_step(events, 100, 1, 3);
  EXPECT_EQ(read(events).steps.size(), 1u);
}

/// The ops of two ranks in these orders, one after another, each with the number of its call.
Events run_orders(const std::vector<std::string>& orders, bool state_stages) {
  Events events;
  for (int rank = 0; rank < 2; ++rank) {
    int start = 10 * rank;
    int forwards = 0;
    int backwards = 0;
    for (const char kind : orders[static_cast<std::size_t>(rank)]) {
      const bool is_forward = kind == 'F';
      const std::string stage = state_stages ? R"(,"stage":)" + text(rank) : "";
      events.slice(is_forward ? "forward" : "backward", rank, 0, start, 10,
                   number(is_forward ? forwards++ : backwards++) + R"(,"step":1)" + stage);
      start += 10;
    }
  }
  return events;
}

bool says_open_chunks(const traces::AssembledSteps& read) {
  for (const std::string& fault : read.remarks.faults)
    if (fault.find("the numbers of ops count calls, not micro-batches") != fault.npos) return true;
  return false;
}

// Rank 0 runs 7 forwards before its first backward and rank 1 runs 5: with one stage per rank, no
// schedule needs so many on the last rank, and two more on the rank before it.
TEST(RunningMicrobatches, ThatCountCallsOfSeveralChunksAreAFault) {
  const std::vector<std::string> interleaved{"FFFFFFFBFBBBBBBB", "FFFFFBFBFBFBBBBB"};
  EXPECT_TRUE(says_open_chunks(read(run_orders(interleaved, false))));
  EXPECT_FALSE(says_open_chunks(read(run_orders(interleaved, true))));
}

// All forwards first, in as many micro-batches as two chunks of two would have; and 1F1B.
TEST(RunningMicrobatches, OfOneStagePerRankAreNot) {
  EXPECT_FALSE(says_open_chunks(read(run_orders({"FFFFBBBB", "FFFFBBBB"}, false))));
  EXPECT_FALSE(says_open_chunks(read(run_orders({"FFBFBFBB", "FBFBFBFB"}, false))));
}

TEST(RunningMicrobatches, OfOpsShorterThanALaunchAreAReservation) {
  const auto says_unit = [](int duration) {
    Events events;
    for (int rank = 0; rank < 2; ++rank)
      events.slice("forward", rank, 0, duration * rank, duration, number(0))
          .slice("backward", rank, 0, duration * (3 - rank), duration, number(0));
    const std::vector<std::string> doubts = read(events).remarks.doubts;
    return !doubts.empty() && doubts[0].find("seem to be in a larger unit") != std::string::npos;
  };
  EXPECT_TRUE(says_unit(1));
  EXPECT_FALSE(says_unit(10));
}

}  // namespace
}  // namespace bubblescope::tests

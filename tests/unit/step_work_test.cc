// Tests slices of Chrome traces that state a step without a rank, run ahead of their step, or last
// over several.
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "tests/support/chrome_text.h"
#include "tests/support/find_text.h"
#include "traces/files/trace_format.h"
#include "traces/measured/assemble_steps.h"

namespace bubblescope::tests {
namespace {

using Parts = std::vector<std::pair<std::string, Nanos>>;

constexpr int kSteps = 4;

std::string step_arg(int step) { return R"("step":)" + std::to_string(step); }

/// Steps at 0, 1000 us and so on of two ranks, a process each: F takes 10 us and B 20 us, so that
/// the pipeline takes 60 us.
Events run_steps() {
  Events events;
  for (int step = 0; step < kSteps; ++step)
    for (int rank = 0; rank < 2; ++rank)
      events
          .slice("forward", rank, 0, 1000 * step + 10 * rank, 10, R"("mb_id":0,)" + step_arg(step))
          .slice("backward", rank, 0, 1000 * step + 40 - 20 * rank, 20,
                 R"("mb_id":0,)" + step_arg(step));
  return events;
}

traces::AssembledSteps read(const Events& events) {
  return traces::assemble_steps(traces::parse_trace({"t.json", events.list()}));
}

void expect_steps(const traces::AssembledSteps& read, Nanos whole, const Parts& outside) {
  ASSERT_EQ(read.whole_steps.size(), static_cast<std::size_t>(kSteps));
  for (const traces::WholeStep& step : read.whole_steps) {
    EXPECT_EQ(step.whole, whole);
    EXPECT_EQ(step.outside, outside);
  }
  EXPECT_TRUE(read.remarks.doubts.empty()) << read.remarks.doubts.front();
}

// It ends 82 us after the start of its step, on two threads at the same time.
TEST(StepWork, OfAProcessOfItsOwnIsOfTheStepThatItStates) {
  for (const int threads : {1, 2}) {
    Events events = run_steps();
    for (int step = 0; step < kSteps; ++step)
      for (int thread = 0; thread < threads; ++thread)
        events.slice("optimizer", 77, thread, 1000 * step + 62, 20, step_arg(step));
    expect_steps(read(events), 82'000, {{"optimizer", 20'000}});
  }
}

// Nothing says whose work the third of three threads beside two ranks is.
TEST(StepWork, OfMoreThreadsThanRanksIsNamed) {
  Events events = run_steps();
  for (int step = 0; step < kSteps; ++step)
    for (int thread = 0; thread < 3; ++thread)
      events.slice("optimizer", 77, thread, 1000 * step + 62, 20 + thread, step_arg(step));
  const traces::AssembledSteps steps = read(events);
  EXPECT_EQ(steps.whole_steps.at(0).whole, 83'000);
  EXPECT_TRUE(mentions(steps.remarks.notes, "they are in no step: 'optimizer' (88 us)"));
}

// A checkpoint of a rank is in the step that it states; of a process of its own, it is named.
TEST(StepWork, OfFewStepsIsInTheirTimeOrNamed) {
  for (const int process : {0, 77}) {
    Events events = run_steps();
    events.slice("save_checkpoint", process, 0, 1062, 300, step_arg(1));
    const traces::AssembledSteps steps = read(events);
    ASSERT_EQ(steps.whole_steps.size(), static_cast<std::size_t>(kSteps));
    EXPECT_EQ(steps.whole_steps[1].whole, process == 0 ? 362'000 : 60'000);
    EXPECT_EQ(mentions(steps.remarks.notes, "they are in no step: 'save_checkpoint' (300 us)"),
              process != 0);
  }
}

// Two workers load the data of two steps later, while the ops run or after them. The last 5 us
// before the ops are the step's own.
TEST(StepWork, AheadOfItsStepDoesNotBeginIt) {
  for (const int process : {0, 77}) {
    Events events = run_steps();
    for (int step = 2; step < kSteps; ++step)
      events.slice("get_batch", process, 8, 1000 * (step - 2) + 5, 40, step_arg(step));
    expect_steps(read(events), 60'000, {});
  }
  Events events = run_steps();
  for (int step = 1; step < kSteps; ++step)
    events.slice("get_batch", 0, 8, 1000 * (step - 1) + 5, 995, step_arg(step));
  EXPECT_EQ(read(events).whole_steps.at(1).whole, 1'000'000);  // from the end of the ops before it
}

TEST(StepWork, OverTheOpsOfOtherStepsIsNamed) {
  for (const int duration : {1500, 2500}) {  // until step 1 and step 2 have ended
    Events events = run_steps();
    events.slice("async_save", 0, 8, 65, duration, step_arg(0));
    const traces::AssembledSteps steps = read(events);
    expect_steps(steps, 60'000, {});
    EXPECT_TRUE(mentions(steps.remarks.notes,
                         "work that lasts over the ops of other steps is in no "
                         "step, with its time on the rank where it took the "
                         "longest: 'async_save' ("));
  }
}

// The pipeline of both ranks takes as long as the range on the second one, which waits.
TEST(StepWork, RangesThatThePipelineFillsAreNoReservation) {
  const auto doubts_with = [](int rank, int duration, int steps) {
    Events events = run_steps();
    for (int step = 0; step < steps; ++step)
      events.slice("run_batch", rank, 9, 1000 * step, duration);
    return read(events).remarks.doubts;
  };
  const std::string part = "'run_batch' holds all ops of a step on its rank and lasts 70 us, ";
  EXPECT_TRUE(doubts_with(1, 60, kSteps).empty());
  EXPECT_TRUE(mentions(doubts_with(1, 70, kSteps), part));
  EXPECT_TRUE(mentions(doubts_with(1, 70, kSteps - 1), part));
  EXPECT_TRUE(doubts_with(1, 70, 1).empty());  // as a profiler's window
}

}  // namespace
}  // namespace bubblescope::tests

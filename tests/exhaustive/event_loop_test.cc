// Compares the dataflow pass with an independent event loop: a clock, a heap of ends, and the rule
// of the machine. Both must agree to the nanosecond on random programs.
#include "tests/support/event_loop.h"

#include <gtest/gtest.h>

#include <random>

#include "sim/engine/simulate.h"
#include "tests/support/random_program.h"

namespace bubblescope::tests {
namespace {

TEST(EventLoop, AgreesWithTheDataflowPassToTheNanosecond) {
  constexpr unsigned kSeed = 20240607;
  std::mt19937 random(kSeed);
  for (int round = 0; round < 2000; ++round) {
    const Program program = random_program(random);
    const std::vector<Nanos> durations = random_durations(program, random);
    const Timeline expected = run_by_the_clock(program, durations);
    const Timeline found = simulate(program, durations);
    ASSERT_EQ(found.start, expected.start) << "seed " << kSeed << ", round " << round;
    ASSERT_EQ(found.end, expected.end) << "seed " << kSeed << ", round " << round;
  }
}

}  // namespace
}  // namespace bubblescope::tests

// The dataflow pass against an event loop that knows nothing of it: a clock, a heap of ends, and
// the rule of the machine. Both must agree to the nanosecond on random programs.
#include "tests/support/event_loop.h"

#include <gtest/gtest.h>

#include <random>

#include "sim/engine/simulate.h"
#include "sim/ir/program_draft.h"

namespace bubblescope {
namespace {

/// A random program without cycles: dependencies point to earlier instructions of any lane.
Program random_program(std::mt19937& random) {
  const auto pick = [&](int low, int high) {
    return std::uniform_int_distribution<int>(low, high)(random);
  };
  const int ranks = pick(1, 5);
  const int count = pick(1, 60);
  ProgramDraft draft(ranks, static_cast<std::size_t>(count));
  const std::uint32_t link = draft.add_lane({0, "link"});
  for (int id = 0; id < count; ++id) {
    const std::int32_t rank = pick(0, ranks - 1);
    const int where = pick(0, 9);
    const std::uint32_t lane = where == 0   ? kNoLane
                               : where == 1 ? link
                                            : static_cast<std::uint32_t>(rank);
    draft.add({forward(0, id), lane, rank, rank});
    for (int edge = pick(0, 3); id > 0 && edge > 0; --edge)
      draft.wait_for(static_cast<InstructionId>(pick(0, id - 1)));
  }
  return std::get<Program>(std::move(draft).finish());
}

TEST(EventLoop, AgreesWithTheDataflowPassToTheNanosecond) {
  constexpr unsigned kSeed = 20240607;
  std::mt19937 random(kSeed);
  for (int round = 0; round < 2000; ++round) {
    const Program program = random_program(random);
    std::vector<Nanos> durations;
    for (InstructionId id = 0; id < program.size(); ++id)
      durations.push_back(1 + static_cast<Nanos>(random() % 50));
    const Timeline expected = run_by_the_clock(program, durations);
    const Timeline found = simulate(program, durations);
    ASSERT_EQ(found.start, expected.start) << "seed " << kSeed << ", round " << round;
    ASSERT_EQ(found.end, expected.end) << "seed " << kSeed << ", round " << round;
  }
}

}  // namespace
}  // namespace bubblescope

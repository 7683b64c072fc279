// Clock differences between ranks, found from ops that depend on each other.
#include "traces/measured/align_clocks.h"

#include <gtest/gtest.h>

#include <vector>

namespace bubblescope::tests {
namespace {

TEST(AlignClocks, FollowsTheLinksThatShowADifferenceFirst) {
  // Ranks 0 to 3 in a row, and a link from the last to the first as in interleaved schedules, with
  // slack. Rank 3's clock is 50 us behind: its link with rank 2 shows it, the one with rank 0 not.
  constexpr Nanos kMicro = 1000;
  Program program;
  program.ranks = 4;
  Timeline timeline;
  const auto add = [&](std::int32_t rank, std::int32_t peer, OpKind kind, Nanos start, Nanos end,
                       std::vector<InstructionId> awaited) {
    program.dependency_begin.push_back(static_cast<std::uint32_t>(program.dependencies.size()));
    program.instructions.push_back({{0, 0, 0, kind}, kNoLane, rank, peer});
    for (const InstructionId id : awaited) program.dependencies.push_back(id);
    timeline.start.push_back(start);
    timeline.end.push_back(end);
    return program.size() - 1;
  };
  const auto link = [&](std::int32_t from, std::int32_t to, Nanos gap) {
    const InstructionId producer = add(from, from, OpKind::kForward, 0, 10'000 * kMicro, {});
    const InstructionId message = add(from, to, OpKind::kSendForward, 0, 0, {producer});
    const Nanos start = 10'000 * kMicro + gap;
    add(to, to, OpKind::kForward, start, start + 1, {message});
  };
  for (const std::int32_t rank : {0, 1}) {
    link(rank, rank + 1, 0);
    link(rank + 1, rank, 0);
  }
  link(2, 3, -50 * kMicro);
  link(3, 2, 50 * kMicro);
  link(3, 0, 1050 * kMicro);
  link(0, 3, 950 * kMicro);
  program.dependency_begin.push_back(static_cast<std::uint32_t>(program.dependencies.size()));
  traces::ClockGaps gaps(4);
  gaps.add(program, timeline);
  const traces::ClockCorrection correction = traces::align_clocks(gaps);
  EXPECT_EQ(correction.shift, (std::vector<Nanos>{0, 0, 0, 50 * kMicro}));
  EXPECT_EQ(correction.notes.size(), 1u);
}

}  // namespace
}  // namespace bubblescope::tests

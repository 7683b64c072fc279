// Clock differences between ranks, found from ops that depend on each other.
#include "traces/measured/align_clocks.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

namespace bubblescope::tests {
namespace {

constexpr Nanos kMicro = 1000;

/// One step: ops of two ranks each, of which one waits for the other.
class GapsOfStep {
 public:
  GapsOfStep(std::int32_t ranks, Nanos begin) : begin_(begin) { program_.ranks = ranks; }

  /// An op of `to` begins `gap` after its input, of `from`, has ended.
  void link(std::int32_t from, std::int32_t to, Nanos gap) {
    const Nanos end = begin_ + 10'000 * kMicro;
    const InstructionId producer = add(from, from, OpKind::kForward, begin_, end, {});
    const InstructionId message = add(from, to, OpKind::kSendForward, 0, 0, {producer});
    add(to, to, OpKind::kForward, end + gap, end + gap + 1, {message});
  }

  void add_to(traces::ClockGaps& gaps) {
    program_.dependency_begin.push_back(static_cast<std::uint32_t>(program_.dependencies.size()));
    gaps.add(program_, timeline_);
  }

 private:
  InstructionId add(std::int32_t rank, std::int32_t peer, OpKind kind, Nanos start, Nanos end,
                    std::vector<InstructionId> awaited) {
    program_.dependency_begin.push_back(static_cast<std::uint32_t>(program_.dependencies.size()));
    program_.instructions.push_back({{0, 0, 0, kind}, kNoLane, rank, peer});
    for (const InstructionId id : awaited) program_.dependencies.push_back(id);
    timeline_.start.push_back(start);
    timeline_.end.push_back(end);
    return program_.size() - 1;
  }

  Nanos begin_;
  Program program_;
  Timeline timeline_;
};

/// Two ranks in steps of a second each, of which the second rank's clock is `lead` ahead, and
/// `drift` more in every step.
traces::ClockGaps gaps_of_two(Nanos lead, Nanos drift, Nanos latency) {
  constexpr Nanos kSecond = 1'000'000'000;
  traces::ClockGaps gaps(2);
  for (Nanos step = 0; step < 5; ++step) {
    GapsOfStep ops(2, 7 * kSecond + step * kSecond);
    ops.link(0, 1, latency + lead + step * drift);
    ops.link(1, 0, latency - lead - step * drift);
    ops.add_to(gaps);
  }
  return gaps;
}

TEST(AlignClocks, FollowsTheLinksThatShowADifferenceFirst) {
  // Ranks 0 to 3 in a row, and a link from the last to the first as in interleaved schedules, with
  // slack. Rank 3's clock is 50 us behind: its link with rank 2 shows it, the one with rank 0 not.
  GapsOfStep step(4, 0);
  for (const std::int32_t rank : {0, 1}) {
    step.link(rank, rank + 1, 0);
    step.link(rank + 1, rank, 0);
  }
  step.link(2, 3, -50 * kMicro);
  step.link(3, 2, 50 * kMicro);
  step.link(3, 0, 1050 * kMicro);
  step.link(0, 3, 950 * kMicro);
  traces::ClockGaps gaps(4);
  step.add_to(gaps);
  const traces::ClockCorrection correction = traces::align_clocks(gaps);
  for (const std::int32_t rank : {0, 1, 2}) EXPECT_EQ(correction.shift_at(rank, 0), 0);
  EXPECT_EQ(correction.shift_at(3, 0), 50 * kMicro);
  EXPECT_EQ(correction.notes.size(), 1u);
}

TEST(AlignClocks, FollowsClocksThatDrift) {
  const traces::ClockGaps gaps = gaps_of_two(3000 * kMicro, 20 * kMicro, 5 * kMicro);
  const traces::ClockCorrection correction = traces::align_clocks(gaps);
  for (Nanos step = 0; step < 5; ++step)
    EXPECT_LE(std::abs(correction.shift_at(1, gaps.origin() + step * 1'000'000'000) +
                       (3000 + 20 * step) * kMicro),
              kMicro);
  ASSERT_EQ(correction.notes.size(), 1u);
  EXPECT_NE(correction.notes.front().find("and then back by 20 us every second"), std::string::npos)
      << correction.notes.front();
}

TEST(AlignClocks, LeavesClocksThatNoLineExplains) {
  traces::ClockGaps gaps(2);
  for (const Nanos lead : {Nanos{3000}, Nanos{-3000}, Nanos{3000}, Nanos{-3000}}) {
    GapsOfStep step(2, 0);
    step.link(0, 1, lead * kMicro);
    step.link(1, 0, -lead * kMicro);
    step.add_to(gaps);
  }
  const traces::ClockCorrection correction = traces::align_clocks(gaps);
  ASSERT_EQ(correction.notes.size(), 1u);
  EXPECT_NE(correction.notes.front().find("which no shift"), std::string::npos);
}

TEST(AlignClocks, CorrectsHostsOfOneNameOnlyWhereThatExplainsAll) {
  const traces::ClockCorrection two =
      traces::align_clocks_of_host(gaps_of_two(3000 * kMicro, 0, 50 * kMicro));
  EXPECT_EQ(two.shift_at(1, 0), -3000 * kMicro);
  EXPECT_EQ(two.notes.size(), 2u);
  // Ops that also contain their waiting begin before their inputs in both directions.
  const traces::ClockCorrection waiting =
      traces::align_clocks_of_host(gaps_of_two(3000 * kMicro, 0, -4000 * kMicro));
  EXPECT_EQ(waiting.shift_at(1, 0), 0);
  EXPECT_TRUE(waiting.notes.empty());
}

}  // namespace
}  // namespace bubblescope::tests

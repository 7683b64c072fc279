// Tests which links differ beyond chance, with chances that are counted by hand.
#include "sim/analysis/link_chance.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <vector>

namespace bubblescope::tests {
namespace {

using Times = std::vector<Nanos>;

/// Whether a link differs from others that have these times.
bool differs(const Times& own, const Times& others, std::size_t links) {
  Times all = own;
  all.insert(all.end(), others.begin(), others.end());
  return differs_beyond_chance(own, all, links);
}

/// `slow` of `count` messages take 4, the others 1.
Times mix(std::size_t slow, std::size_t count) {
  Times times(count, 1);
  for (std::size_t at = 0; at < slow; ++at) times[at] = 4;
  return times;
}

// One of C(8, 4) = 70 ways to choose a link's four messages of eight has all slow ones. The two
// links of two ranks are compared once, in both directions: 2/70 is under 5 %.
TEST(LinkChance, FourMessagesOfTwoLinksAreEnoughIfNoneOverlap) {
  EXPECT_TRUE(differs(mix(4, 4), mix(0, 4), 2));
  EXPECT_TRUE(differs({0, 0, 0, 0}, mix(0, 4), 2));
  // With three slow ones there are C(4, 3) * C(4, 1) = 16 more ways to have as many of four.
  EXPECT_FALSE(differs({4, 4, 4, 1}, {4, 1, 1, 1}, 2));
}

// Six links of four messages. One of C(24, 4) = 10626 ways has the four slow messages; five
// comparisons in both directions make that 0.1 %. If six of the 20 others are slow, too, three slow
// ones of four are found in (C(9, 3) * 15 + C(9, 4)) / 10626 = 13 % of all ways.
TEST(LinkChance, SlowMessagesElsewhereMakeItChance) {
  EXPECT_TRUE(differs(mix(4, 4), mix(0, 20), 6));
  EXPECT_FALSE(differs(mix(3, 4), mix(6, 20), 6));
}

// The same shares of ten times as many messages are no chance.
TEST(LinkChance, ManyMessagesTellALinkFromOthersThatVary) {
  EXPECT_TRUE(differs(mix(30, 40), mix(60, 200), 6));
}

// Ever more links are compared, so that one of them seems to differ sooner.
TEST(LinkChance, ManyLinksNeedMoreEvidence) {
  EXPECT_TRUE(differs(mix(4, 4), mix(0, 4), 2));
  EXPECT_FALSE(differs(mix(4, 4), mix(0, 4), 6));
}

}  // namespace
}  // namespace bubblescope::tests

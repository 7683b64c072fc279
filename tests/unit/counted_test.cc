// Tests counts and their nouns.
#include "sim/ir/counted.h"

#include <gtest/gtest.h>

namespace bubblescope::tests {
namespace {

TEST(Counted, HasTheNumberOfItsNoun) {
  EXPECT_EQ(counted(1, "rank"), "1 rank");
  EXPECT_EQ(counted(0, "rank"), "0 ranks");
  EXPECT_EQ(counted(2, "micro-batch"), "2 micro-batches");
  EXPECT_EQ(counted(3, "entry"), "3 entries");
  EXPECT_EQ(counted(2, "copy"), "2 copies");
  EXPECT_EQ(counted(1, "process"), "1 process");
  EXPECT_EQ(counted(2, "process"), "2 processes");
}

}  // namespace
}  // namespace bubblescope::tests

// Tests suggestions for typos, prefixes, words and initials.
#include "sim/ir/nearest_names.h"

#include <gtest/gtest.h>

namespace bubblescope::tests {
namespace {

using Names = std::vector<std::string>;

const Names kSchedules{"1f1b",  "dualpipe", "gpipe",        "interleaved-zb", "zb-1p",
                       "zb-2p", "zb-auto",  "zb-h1",        "zb-h2",          "zb-v",
                       "ZB1P",  "Hanayo",   "ZBVZeroBubble"};

TEST(NearestNames, MendTypos) {
  EXPECT_EQ(nearest_names("1f2b", kSchedules), Names{"1f1b"});
  EXPECT_EQ(nearest_names("1f2b", {"1f1b", "1F1B", "gpipe"}), Names{"1f1b"});
  EXPECT_EQ(nearest_names("Dual-Pipe", kSchedules), Names{"dualpipe"});
  EXPECT_EQ(nearest_names("gipe", kSchedules), Names{"gpipe"});
}

TEST(NearestNames, CompleteWhatBeginsSo) {
  EXPECT_EQ(nearest_names("zb", kSchedules), (Names{"zb-1p", "zb-2p", "zb-auto", "zb-h1"}));
  EXPECT_EQ(nearest_names("--micro-batch", {"--micro-batch-size", "--microbatches"}),
            Names{"--micro-batch-size"});
}

TEST(NearestNames, KnowInitialsBothWays) {
  EXPECT_EQ(nearest_names("--mbs", {"--b", "--m", "--micro-batch-size", "--pp"}),
            Names{"--micro-batch-size"});
  EXPECT_EQ(nearest_names("zero-bubble", kSchedules).front(), "interleaved-zb");
}

TEST(NearestNames, KnowWordsThatAreCutShort) {
  EXPECT_EQ(nearest_names("llama-70b", {"llama2-13b", "llama2-70b", "llama3-8b", "llama3-70b"}),
            (Names{"llama2-70b", "llama3-70b"}));
  EXPECT_EQ(nearest_names("qwen3-30b", {"qwen3-32b", "qwen3-30b-a3b"}),
            (Names{"qwen3-32b", "qwen3-30b-a3b"}));
  EXPECT_EQ(nearest_names("torch", {"pytorch", "megatron"}), Names{"pytorch"});
}

// "interleaved-1f1b" has the word "1f1b", and is another schedule all the same.
TEST(NearestNames, AreThoseWithTheSameLettersFirst) {
  const Names schedules{"1f1b", "interleaved", "zb-v", "Interleaved1F1B", "ZBVZeroBubble"};
  EXPECT_EQ(nearest_names("interleaved-1f1b", schedules), Names{"Interleaved1F1B"});
  EXPECT_EQ(nearest_names("Interleaved 1F1B", schedules), Names{"Interleaved1F1B"});
  EXPECT_EQ(nearest_names("zbv", schedules), Names{"zb-v"});
}

// One digit makes another device of a name.
TEST(NearestNames, AreThoseAmongTheWordsBeforeThoseWithLikeLetters) {
  const Names devices{"a100", "a100-sxm4-80gb", "b200", "h100", "h200-141gb", "v100"};
  EXPECT_EQ(nearest_names("H100-SXM5-80GB", devices), Names{"h100"});
  EXPECT_EQ(nearest_names("b200-192gb", devices), Names{"b200"});
  EXPECT_EQ(nearest_names("Tesla V100-SXM2-32GB", devices), Names{"v100"});
  EXPECT_EQ(nearest_names("NVIDIA H100 80GB HBM3", devices), Names{"h100"});
  EXPECT_EQ(nearest_names("h100-80gb", {"a100-80gb", "h100"}), Names{"h100"});
  EXPECT_EQ(nearest_names("--p2p-mod", {"--p2p", "--p2p-mode"}), Names{"--p2p-mode"});
  EXPECT_EQ(nearest_names("--optimizer-cpu-offload", {"--optimizer", "--offload"}), Names{});
}

TEST(NearestNames, AreNoneWhereNothingIsNear) {
  EXPECT_EQ(nearest_names("quux", kSchedules), Names{});
  EXPECT_EQ(nearest_names("x", kSchedules), Names{});
  EXPECT_EQ(nearest_names("", kSchedules), Names{});
  EXPECT_EQ(nearest_names("--mbs", {"--b"}), Names{});  // two of three letters differ
}

TEST(Suggestion, NamesAllThatAreNear) {
  EXPECT_EQ(suggestion(Names{}), "");
  EXPECT_EQ(suggestion(Names{"a"}), "; did you mean 'a'?");
  EXPECT_EQ(suggestion(Names{"a", "b", "c"}), "; did you mean 'a', 'b' or 'c'?");
}

}  // namespace
}  // namespace bubblescope::tests

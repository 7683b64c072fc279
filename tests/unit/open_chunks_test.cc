// Tests ops without numbers that several chunks per rank run in the same order as one.
#include "traces/measured/open_chunks.h"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/chrome_text.h"
#include "traces/files/trace_format.h"
#include "traces/measured/assemble_steps.h"

namespace bubblescope::tests {
namespace {

/// When a rank starts its ops, and how long each takes, in us.
struct RankTimes {
  std::array<int, 4> forwards;
  int forward = 0;
  std::array<int, 4> backwards;
  int backward = 0;
};

// Four forwards on each of two ranks: four micro-batches in one stage per rank, or two in two.
// Rank 1 is slower, 12 ms and 24 ms beside 10 ms and 20 ms.
constexpr RankTimes kSlowLast{
    {10'000, 22'000, 34'000, 46'000}, 12'000, {58'000, 82'000, 106'000, 130'000}, 24'000};
// Forward 2 begins 20 ms after forward 0, sooner than forward 0 of both ranks takes, 22 ms.
constexpr RankTimes kGpipeFirst{
    {0, 10'000, 20'000, 30'000}, 10'000, {82'000, 106'000, 130'000, 154'000}, 20'000};
// Forward 2 begins when forward 0 of rank 1 ends.
constexpr RankTimes kInterleavedFirst{
    {0, 10'000, 22'000, 34'000}, 10'000, {82'000, 106'000, 130'000, 154'000}, 20'000};
// GPipe with equal ranks: forward 2 begins when forward 0 of rank 1 ends.
constexpr RankTimes kEqualFirst{
    {0, 10'000, 20'000, 30'000}, 10'000, {70'000, 90'000, 110'000, 130'000}, 20'000};
constexpr RankTimes kEqualLast{
    {10'000, 20'000, 30'000, 40'000}, 10'000, {50'000, 70'000, 90'000, 110'000}, 20'000};

/// A message of a rank.
struct Message {
  int rank = 0;
  const char* name = "";
  int start = 0;
};

bool is_open(const std::array<RankTimes, 2>& ranks, const std::vector<Message>& messages = {}) {
  traces::ObservedTrace trace;
  for (std::size_t rank = 0; rank < 2; ++rank) {
    const std::string arguments = R"("step":0,"pp_rank":)" + std::to_string(rank);
    const RankTimes& times = ranks[rank];
    Events events;
    for (const int start : times.forwards)
      events.slice("forward-compute", 0, 0, start, times.forward, arguments);
    for (const int start : times.backwards)
      events.slice("backward-compute", 0, 0, start, times.backward, arguments);
    for (const Message& message : messages)
      if (message.rank == static_cast<int>(rank))
        events.slice(message.name, 0, 1, message.start, 100, arguments);
    traces::ObservedTrace file =
        traces::parse_trace({"rank" + std::to_string(rank) + ".json", events.list()});
    if (rank == 0)
      trace = std::move(file);
    else
      traces::append(trace, std::move(file));
  }
  const traces::AssembledSteps steps = traces::assemble_steps(std::move(trace));
  for (const std::string& fault : steps.remarks.faults)
    if (fault.find("in one stage per rank") != fault.npos) return true;
  return false;
}

TEST(OpenChunks, AreExcludedBySoonForwardsOfOneRank) {
  EXPECT_FALSE(is_open({kGpipeFirst, kSlowLast}));
  EXPECT_TRUE(is_open({kInterleavedFirst, kSlowLast}));
}

TEST(OpenChunks, AreOpenBetweenEqualRanks) { EXPECT_TRUE(is_open({kEqualFirst, kEqualLast})); }

TEST(OpenChunks, AreExcludedByMessagesThatReachNoSecondChunk) {
  const std::vector<Message> sent{{0, "forward-send", 10'000}, {1, "backward-send", 70'000}};
  const std::vector<Message> received{{1, "forward-recv", 9'900}, {0, "backward-recv", 69'900}};
  EXPECT_FALSE(is_open({kEqualFirst, kEqualLast}, sent));
  EXPECT_FALSE(is_open({kEqualFirst, kEqualLast}, received));
  EXPECT_TRUE(is_open({kEqualFirst, kEqualLast}, {{0, "forward-send", 10'000}}));
}

/// The first fault of two ranks in one file, the last of which sends the result of every forward.
/// The numbers of ops count calls.
std::string first_fault_of(const std::vector<std::string>& orders) {
  Events events;
  for (int rank = 0; rank < 2; ++rank) {
    const std::string place = R"("step":0,"pp_rank":)" + std::to_string(rank);
    std::array<int, 2> calls{};
    int start = 10'000 * rank;
    for (const char kind : orders[static_cast<std::size_t>(rank)]) {
      const bool is_forward = kind == 'F';
      const int call = calls[is_forward ? 0 : 1]++;
      events.slice(is_forward ? "forward-compute" : "backward-compute", rank, 0, start, 10'000,
                   place + R"(,"microbatch":)" + std::to_string(call));
      start += 10'000;
      if (is_forward && rank == 1) events.slice("forward-send", rank, 1, start, 100, place);
    }
  }
  const traces::AssembledSteps steps =
      traces::assemble_steps(traces::parse_trace({"t.json", events.list()}));
  return steps.remarks.faults.empty() ? "" : steps.remarks.faults.front();
}

// With two stages per rank, the second rank sends results of its first stage to the first rank.
TEST(OpenChunks, AreSaidWithoutARankThatReceivesFromTheLast) {
  const std::string open = first_fault_of({"FFFFFFFBFBBBBBBB", "FFFFFBFBFBFBBBBB"});
  EXPECT_NE(open.find("as with several stages per rank"), std::string::npos) << open;
  const std::string missing = first_fault_of({"FFBFBFBB", "FBFBFBFB"});
  EXPECT_NE(missing.find("stage 2, which no trace runs"), std::string::npos) << missing;
}

}  // namespace
}  // namespace bubblescope::tests

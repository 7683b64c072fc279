// The lists of PyTorch's releases: where 2.15 puts waits, and what these block.
#include "sim/ir/pytorch_lists.h"

#include <gtest/gtest.h>

#include "sim/engine/simulate.h"
#include "sim/ir/swapped_messages.h"
#include "sim/ir/validate.h"
#include "sim/model/cost_model.h"
#include "tests/support/as_written.h"
#include "traces/schedules/text_schedule.h"

namespace bubblescope::tests {
namespace {

std::string text_of(const RankOrder& list) {
  std::string text;
  for (const Op& op : list) text += (text.empty() ? "" : " ") + to_string(op);
  return text;
}

std::string first_problem(const std::string& text) {
  const Problems problems = validate(traces::parse_schedule_text(text));
  return problems.empty() ? "" : to_string(problems[0]);
}

Nanos makespan(const Schedule& schedule, P2pMode mode) {
  LowerOptions options;
  options.mode = mode;
  UniformCost cost;
  cost.forward = 1;
  CostModel costs = spread(cost, schedule);
  costs.message = 5;
  return compute_makespan(simulate(std::get<Program>(lower(schedule, options)), costs));
}

TEST(SendWaits, AreAfterTheBackwardOrAtTheEnd) {
  const RankOrder list = traces::parse_schedule_text(
                             "0F0 0SEND_F0 0F1 0SEND_F1 0RECV_B0 0I0 0RECV_B1 0I1 0W0 0W1 | "
                             "1RECV_F0 1F0 1I0 1SEND_B0 1RECV_F1 1F1 1I1 1SEND_B1 1W0 1W1")
                             .posted[0];
  EXPECT_EQ(text_of(add_send_waits(list)),
            "0F0 0SEND_F0 0F1 0SEND_F1 0RECV_B0 0I0 0WAIT_SEND_F0 0RECV_B1 0I1 0WAIT_SEND_F1 0W0 "
            "0W1");
}

TEST(SendWaits, AreOnceForEachSendInTheOrderOfSending) {
  const Schedule schedule = traces::parse_schedule_text("0F0 0F1 0B1 0B0 | 1F0 1F1 1B1 1B0");
  EXPECT_EQ(text_of(make_pytorch_lists(schedule)[1]),
            "1RECV_F0 1F0 1RECV_F1 1F1 1B1 1SEND_B1 1B0 1SEND_B0 1REDUCE_GRAD 1WAIT_REDUCE_GRAD "
            "1WAIT_SEND_B1 1WAIT_SEND_B0");
}

// Lists without any waits belong to a runtime that waits implicitly. With one, all must be there.
TEST(ValidateWaits, FindsSendsAndReductionsWithoutOne) {
  EXPECT_EQ(first_problem("0F0 0SEND_F0 0RECV_B0 0B0 0WAIT_SEND_F0 | 1RECV_F0 1F0 1B0 1SEND_B0"),
            "1SEND_B0 has no wait; add its WAIT_SEND_B after it, as PyTorch 2.15 requires");
  EXPECT_EQ(first_problem("0F0 0SEND_F0 0RECV_B0 0B0 | 1RECV_F0 1F0 1B0 1SEND_B0"), "");
  EXPECT_NE(first_problem("0F0 0WAIT_SEND_F0 0B0").find("waits for no SEND"), std::string::npos);
  EXPECT_NE(first_problem("0F0 0B0 0WAIT_REDUCE_GRAD").find("waits for no REDUCE_GRAD"),
            std::string::npos);
  EXPECT_NE(first_problem("0F0 1F0 1B0 1REDUCE_GRAD 0B0 0REDUCE_GRAD 0WAIT_REDUCE_GRAD")
                .find("1REDUCE_GRAD has no wait"),
            std::string::npos);
}

// F takes 1, a message 5. With the wait, 0F1 starts when F0 has arrived, at 6, and 1F1 ends at 13;
// without, the second message leaves as soon as its receive is posted, at 6, and 1F1 ends at 12.
TEST(SendWaits, BlockWhatFollowsThem) {
  const std::string receives = " | 1RECV_F0 1F0 1RECV_F1 1F1";
  const Schedule waiting = traces::parse_schedule_text(
      "0F0 0SEND_F0 0WAIT_SEND_F0 0F1 0SEND_F1 0WAIT_SEND_F1" + receives);
  const Schedule plain = traces::parse_schedule_text("0F0 0SEND_F0 0F1 0SEND_F1" + receives);
  EXPECT_TRUE(validate(waiting).empty());
  EXPECT_EQ(makespan(waiting, P2pMode::kRendezvous), 13);
  EXPECT_EQ(makespan(plain, P2pMode::kRendezvous), 12);
  // A send with a slot is done at once.
  EXPECT_EQ(makespan(waiting, P2pMode::kEager), makespan(plain, P2pMode::kEager));
  EXPECT_EQ(makespan(waiting, P2pMode::kFifo), makespan(plain, P2pMode::kFifo));
}

TEST(SwappedMessages, AreFoundByTheirOrderBetweenTwoRanks) {
  const Schedule schedule = traces::parse_schedule_text(
      "0F0 0SEND_F0 0F1 0SEND_F1 0RECV_B0 0B0 0RECV_B1 0B1 | "
      "1RECV_F1 1RECV_F0 1F0 1B0 1SEND_B0 1F1 1B1 1SEND_B1");
  const Problems swapped = find_swapped_messages(schedule, schedule.posted);
  ASSERT_EQ(swapped.size(), 1u);
  EXPECT_EQ(swapped[0].rank, 1);
  EXPECT_EQ(to_string(swapped[0]),
            "1RECV_F1 is message 0 expected from rank 0, which sends 0SEND_F0 there; order both "
            "the same");
}

}  // namespace
}  // namespace bubblescope::tests

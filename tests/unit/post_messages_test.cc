// The message lists: examples by hand, and a direct transcription of PyTorch's algorithm.
#include "sim/ir/post_messages.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "sim/ir/error.h"
#include "sim/ir/validate.h"
#include "tests/support/as_written.h"
#include "tests/support/random_schedule.h"
#include "traces/schedules/text_schedule.h"

namespace bubblescope::tests {
namespace {

std::string posted(const std::string& text) {
  Schedule schedule = traces::parse_schedule_text(text);
  schedule.posted = post_messages(schedule);
  return traces::write_schedule_text(schedule);
}

TEST(PostMessages, PutsSendsAfterTheirOpAndReceivesAtOnceWithThePeer) {
  EXPECT_EQ(posted("0F0 0F1 0B0 0B1 | 1F0 1B0 1F1 1B1"),
            "0F0 0SEND_F0 0F1 0SEND_F1 0RECV_B0 0B0 0RECV_B1 0B1\n"
            "1RECV_F0 1F0 1RECV_F1 1B0 1SEND_B0 1F1 1B1 1SEND_B1\n");
}

// PyTorch's own test: the idle slots of rank 1 let both receives come before its first op.
TEST(PostMessages, SkipsAPassForAnIdleSlot) {
  EXPECT_EQ(posted("0F0 0F1 _ 0B0 _ 0B1 | _ 1F0 1B0 1F1 1B1 _"),
            "0F0 0SEND_F0 0F1 0SEND_F1 0RECV_B0 0B0 0RECV_B1 0B1\n"
            "1RECV_F0 1RECV_F1 1F0 1B0 1SEND_B0 1F1 1B1 1SEND_B1\n");
}

TEST(PostMessages, NeedsNoneBetweenStagesOfOneRank) {
  EXPECT_EQ(posted("0F0 1F0 2F0 2B0 1B0 0B0"), "0F0 1F0 2F0 2B0 1B0 0B0\n");
}

TEST(PostMessages, PutsBothSendsAfterAPair) {
  EXPECT_EQ(
      posted("0F0 3F0 3B0 (0F1;0B0)OVERLAP_F_B 3F1 3B1 0B1 | 1F0 2F0 2B0 1B0 1F1 2F1 2B1 1B1"),
      "0F0 0SEND_F0 3RECV_F0 3F0 3B0 3SEND_B0 0RECV_B0 (0F1;0B0)OVERLAP_F_B 0SEND_F1 3RECV_F1 "
      "3F1 3B1 3SEND_B1 0RECV_B1 0B1\n"
      "1RECV_F0 1F0 2F0 2SEND_F0 2RECV_B0 2B0 1B0 1SEND_B0 1RECV_F1 1F1 2F1 2SEND_F1 2RECV_B1 "
      "2B1 1B1 1SEND_B1\n");
}

TEST(PostMessages, KeepsTheMessagesThatWereRead) {
  const Schedule schedule = traces::parse_schedule_text("0F0 0SEND_F0 | 1RECV_F0 1F0");
  EXPECT_EQ(post_messages(schedule), schedule.posted);
}

TEST(PostMessages, NamesTheRanksThatWaitForEachOther) {
  try {
    post_messages(traces::parse_schedule_text("1B0 0F0 0B0 | 1F0"));
    FAIL() << "a stage on two ranks was accepted";
  } catch (const Error&) {
  }
  try {
    post_messages(traces::parse_schedule_text("0F0 0B0 0F1 0B1 | 1F1 1B1 1F0 1B0"));
    FAIL() << "an order that waits for itself was accepted";
  } catch (const Error& error) {
    EXPECT_STREQ(
        error.what(),
        "the messages cannot be placed, because these ranks wait for each other: rank 0 at 0B0, "
        "rank 1 at 1F1; reorder their ops ('bubblescope check' shows the cycle)");
    EXPECT_EQ(error.fault(), Fault::kProblem);
  }
}

/// PyTorch's _add_send_recv, line by line: sets of the actions on each rank's list.
class PlainPosting {
 public:
  explicit PlainPosting(const Schedule& schedule)
      : schedule_(schedule),
        left_(schedule.posted.empty() ? schedule.order : schedule.posted),
        lists_(left_.size()),
        on_list_(left_.size()) {}

  std::vector<RankOrder> run() && {
    for (bool progress = true; progress;) {
      progress = false;
      for (std::size_t rank = 0; rank < left_.size(); ++rank)
        if (!left_[rank].empty() && step(rank)) progress = true;
    }
    return lists_;
  }

 private:
  bool step(std::size_t rank) {
    RankOrder& left = left_[rank];
    const std::ptrdiff_t width = left[0].pairing == Pairing::kFirst ? 2 : 1;
    const RankOrder cell(left.begin(), left.begin() + width);
    for (const Op& op : cell)
      if (!is_ready(rank, op)) return false;
    left.erase(left.begin(), left.begin() + width);
    if (cell[0].kind == OpKind::kIdle) return true;
    for (const Op& op : cell) put(rank, op);
    for (const Op& op : cell) communicate(rank, op);
    return true;
  }

  bool has(std::size_t rank, std::int32_t stage, OpKind kind, std::int32_t microbatch) const {
    return on_list_[rank].count(to_string(Op{stage, microbatch, 0, kind})) > 0;
  }

  bool is_ready(std::size_t rank, const Op& op) const {
    if (op.kind == OpKind::kForward && !schedule_.is_first(op.stage))
      return has(rank, op.stage, OpKind::kRecvForward, op.microbatch) ||
             has(rank, op.stage - 1, OpKind::kForward, op.microbatch);
    if (gives_input_grad(op.kind) && !schedule_.is_last(op.stage))
      return has(rank, op.stage, OpKind::kRecvBackward, op.microbatch) ||
             has(rank, op.stage + 1, OpKind::kInputGrad, op.microbatch) ||
             has(rank, op.stage + 1, OpKind::kBackward, op.microbatch);
    return true;
  }

  void put(std::size_t rank, const Op& op) {
    lists_[rank].push_back(op);
    on_list_[rank].insert(to_string(op));
  }

  void communicate(std::size_t rank, const Op& op) {
    const bool forward = op.kind == OpKind::kForward;
    if (!forward && !gives_input_grad(op.kind)) return;
    if (forward ? schedule_.is_last(op.stage) : schedule_.is_first(op.stage)) return;
    const std::int32_t peer_stage = op.stage + (forward ? 1 : -1);
    const auto peer = static_cast<std::size_t>(schedule_.rank_of_stage[peer_stage]);
    if (peer == rank) return;
    put(rank, {op.stage, op.microbatch, 0, forward ? OpKind::kSendForward : OpKind::kSendBackward});
    put(peer,
        {peer_stage, op.microbatch, 0, forward ? OpKind::kRecvForward : OpKind::kRecvBackward});
  }

  const Schedule& schedule_;
  std::vector<RankOrder> left_;
  std::vector<RankOrder> lists_;
  std::vector<std::set<std::string>> on_list_;
};

TEST(PostMessages, AgreesWithPyTorchsAlgorithmOnRandomSchedules) {
  for (std::uint32_t seed = 0; seed < 2000; ++seed) {
    RandomTraits traits;
    traits.idle = seed % 2 == 1;
    const Schedule schedule = random_schedule(seed, traits);
    ASSERT_EQ(post_messages(schedule), PlainPosting(schedule).run()) << "seed " << seed;
  }
}

TEST(PostMessages, IsLegalOnRandomSchedules) {
  for (std::uint32_t seed = 0; seed < 1000; ++seed) {
    RandomTraits traits;
    traits.messages = true;
    traits.slices = seed % 3 == 0;
    traits.recompute = seed % 5 == 0;
    const Schedule schedule = random_schedule(seed, traits);
    const Problems problems = validate(schedule);
    ASSERT_TRUE(problems.empty()) << "seed " << seed << ": " << to_string(problems[0]) << "\n"
                                  << traces::write_schedule_text(schedule);
  }
}

}  // namespace
}  // namespace bubblescope::tests

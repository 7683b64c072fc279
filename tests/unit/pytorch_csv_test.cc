// PyTorch's CSV: its content, what is refused, and that nothing is lost in either direction.
#include "traces/schedules/pytorch_csv.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "sim/ir/error.h"
#include "sim/ir/validate.h"
#include "tests/support/as_written.h"
#include "tests/support/error_text.h"
#include "tests/support/malformed.h"
#include "tests/support/problem_text.h"
#include "tests/support/random_schedule.h"
#include "tests/support/test_paths.h"
#include "traces/files/file.h"
#include "traces/schedules/text_schedule.h"
#include "traces/timelines/schedule_file.h"

namespace bubblescope::tests {
namespace {

Schedule read(const std::string& text) { return traces::read_pytorch_csv(text, "f.csv"); }

TEST(PytorchCsv, SaysShapeAndPlacement) {
  const Schedule schedule = read("0F0,3F0,3B0,0B0\n1F0,2F0,2B0,1B0\n");
  EXPECT_EQ(schedule.name, "f");
  EXPECT_EQ(schedule.shape, (Shape{2, 2, 1, 1, {}}));
  EXPECT_EQ(schedule.rank_of_stage, (std::vector<std::int32_t>{0, 1, 1, 0}));
  EXPECT_EQ(schedule.pipelines, 1);
  EXPECT_FALSE(schedule.forward_only);
  EXPECT_EQ(schedule.order[1],
            (RankOrder{forward(1, 0), forward(2, 0), backward(2, 0), backward(1, 0)}));
  EXPECT_TRUE(schedule.posted.empty());
}

TEST(PytorchCsv, RoundsChunksUpWhereRanksHoldUnequallyMany) {
  EXPECT_EQ(read("0F0,2F0\n1F0\n").shape.chunks, 2);
}

// Stages 2 and 3 are the replicas; micro-batch 1 of 2 runs through them only.
TEST(PytorchCsv, RecognizesTwoPipelines) {
  const Schedule schedule = read("0F0,3F1,3B1,0B0\n2F1,1F0,1B0,2B1\n");
  EXPECT_EQ(schedule.pipelines, 2);
  EXPECT_EQ(schedule.shape.chunks, 1);
  EXPECT_EQ(validate(schedule).size(), 0u);
}

TEST(PytorchCsv, WithoutBackwardIsForwardOnly) { EXPECT_TRUE(read("0F0\n1F0\n").forward_only); }

TEST(PytorchCsv, ReadsWhatPythonsCsvWrites) {
  const Schedule schedule = read("0F0,0B0\n");
  EXPECT_EQ(read("0F0,0B0\r\n"), schedule);
  EXPECT_EQ(read("0F0,0B0"), schedule);
  EXPECT_EQ(read("\"0F0\",\"0B0\"\r\n"), schedule);
  EXPECT_EQ(read(" 0F0 ,\t0B0 \n"), schedule);
  EXPECT_EQ(read("00F00,0B0\n"), schedule);  // as \d+ allows it
}

TEST(PytorchCsv, KeepsIdleSlotsAndMessagesInPosted) {
  const Schedule idle = read("0F0,,0B0\n");
  EXPECT_EQ(idle.order[0].size(), 2u);
  ASSERT_EQ(idle.posted.size(), 1u);
  EXPECT_EQ(idle.posted[0][1].kind, OpKind::kIdle);
  EXPECT_FALSE(posts_messages(idle));
  const Schedule messages = read("0F0,0SEND_F0\n1RECV_F0,1F0\n");
  EXPECT_EQ(messages.posted[1][0].kind, OpKind::kRecvForward);
  EXPECT_TRUE(posts_messages(messages));
}

TEST(PytorchCsv, ReadsAPairAsOneCell) {
  const Schedule schedule = read("0F0,( 0F1 ; 0B0 )OVERLAP_F_B,0B1\n");
  RankOrder expected{forward(0, 0), forward(0, 1), backward(0, 0), backward(0, 1)};
  expected[1].pairing = Pairing::kFirst;
  expected[2].pairing = Pairing::kSecond;
  EXPECT_EQ(schedule.order[0], expected);
  EXPECT_EQ(traces::write_pytorch_csv(schedule), "0F0,(0F1;0B0)OVERLAP_F_B,0B1\n");
}

TEST(PytorchCsv, KeepsAMergedBackwardBesideSplitOnes) {
  EXPECT_EQ(read("0F0,0F1,0B0,0I1,0W1\n").op_count(), 5);
}

TEST(PytorchCsv, LeavesIllegalSchedulesToValidate) {
  EXPECT_EQ(problems_of(read("0F0,0F0,0B0\n")),
            "0F0 runs twice; the first is at position 0, remove one");
  EXPECT_EQ(problems_of(read("0B0,0F0\n")), "0B0 runs before its forward 0F0; move it after");
  EXPECT_EQ(problems_of(read("0F0,0F2,0B0\n")),
            "0F1 is missing; add it to this rank\n"
            "0B1 is missing, and so are I and W; add B, or I and W\n"
            "0B2 is missing, and so are I and W; add B, or I and W");
  EXPECT_EQ(problems_of(read("0F0,0I0,0W0,0B0\n")),
            "stage 0, micro-batch 0 has B as well as I; keep one of them");
}

TEST(PytorchCsv, RefusesWhatIsMalformed) { expect_refusals("pytorch_csv.txt", read); }

TEST(PytorchCsv, SurvivesDamage) {
  expect_survival("0F0,0SEND_F0,,(0F1;0B0)OVERLAP_F_B\n\"1RECV_F0\",1F0,1REDUCE_GRAD\r\n", read);
}

TEST(PytorchCsv, RoundTripsRandomSchedules) {
  for (std::uint32_t seed = 0; seed < 1000; ++seed) {
    RandomTraits traits;
    traits.messages = seed % 3 == 1;
    traits.idle = seed % 3 == 2;
    Schedule schedule = random_schedule(seed, traits);
    schedule.name = "f";
    const std::string text = traits.messages
                                 ? write_pytorch_csv_comms(schedule, {PytorchRelease::kFrom26})
                                 : traces::write_pytorch_csv(schedule);
    ASSERT_TRUE(read(text) == schedule) << "seed " << seed << "\n" << text;
  }
}

TEST(PytorchCsv, LeavesMessagesOutOfComputeOnlyFiles) {
  const Schedule schedule = read("0UNSHARD,0F0,0SEND_F0\n1RECV_F0,1F0\n");
  EXPECT_EQ(traces::write_pytorch_csv(schedule), "0F0\n1F0\n");
  EXPECT_EQ(write_pytorch_csv_comms(schedule, {PytorchRelease::kFrom26}),
            "0UNSHARD,0F0,0SEND_F0\n1RECV_F0,1F0\n");
  EXPECT_EQ(traces::write_pytorch_csv(read("0UNSHARD,0F0,0B0,0REDUCE_GRAD\n")), "0F0,0B0\n");
}

TEST(PytorchCsv, PostsMessagesThatTheScheduleLacks) {
  const Schedule schedule = read("0F0,,0B0\n1F0,1B0\n");
  EXPECT_EQ(write_pytorch_csv_comms(schedule, {PytorchRelease::kFrom26}),
            "0F0,0SEND_F0,0RECV_B0,0B0\n1RECV_F0,1F0,1B0,1SEND_B0\n");
  EXPECT_EQ(write_pytorch_csv_comms(schedule),
            "0F0,0SEND_F0,0RECV_B0,0B0,0WAIT_SEND_F0,0REDUCE_GRAD,0WAIT_REDUCE_GRAD\n"
            "1RECV_F0,1F0,1B0,1SEND_B0,1REDUCE_GRAD,1WAIT_REDUCE_GRAD,1WAIT_SEND_B0\n");
}

// A file of 2.14 gets the waits that 2.15 needs, and a file of 2.15 loses them for 2.14; actions
// that either moved stay in place.
TEST(PytorchCsv, AddsOrLeavesOutTheWaitsOfARelease) {
  const std::string old_lists =
      "0F0,0SEND_F0,0RECV_B0,0B0,0REDUCE_GRAD\n1RECV_F0,1F0,1B0,1SEND_B0\n";
  const std::string lists =
      "0F0,0SEND_F0,0RECV_B0,0B0,0WAIT_SEND_F0,0REDUCE_GRAD,0WAIT_REDUCE_GRAD\n"
      "1RECV_F0,1F0,1B0,1SEND_B0,1WAIT_SEND_B0\n";
  const std::string moved =
      "0F0,0SEND_F0,0WAIT_SEND_F0,0RECV_B0,0B0\n"
      "1RECV_F0,1F0,1B0,1SEND_B0,1WAIT_SEND_B0\n";
  EXPECT_EQ(write_pytorch_csv_comms(read(old_lists)), lists);
  EXPECT_EQ(write_pytorch_csv_comms(read(lists), {PytorchRelease::kFrom26}), old_lists);
  EXPECT_EQ(write_pytorch_csv_comms(read(moved)), moved);
}

TEST(PytorchCsv, NamesTheReleasesWhereAnActionIsUnknown) {
  EXPECT_TRUE(fails_with([] { read("0F0,0PREFETCH0\n"); }, "f.csv:1:2: '0PREFETCH0' has the"));
  EXPECT_TRUE(fails_with([] { read("0F0,0PREFETCH0\n"); }, "PyTorch 2.6 to 2.15"));
}

TEST(PytorchCsv, WritesARankWithoutOpsAsOneIdleSlot) {
  Schedule schedule = read("0F0\n1F0\n");
  schedule.order[1].clear();
  EXPECT_EQ(traces::write_pytorch_csv(schedule), "0F0\n\"\"\n");
}

TEST(PytorchCsv, RefusesToWriteWhatTheGrammarLacks) {
  EXPECT_EQ(
      error_of([] { traces::write_pytorch_csv(traces::parse_schedule_text("0F0.0 0F0.1")); }),
      "text cuts its sequences into 2 slices, which PyTorch's CSV has no words for; convert it "
      "to native or text");
  EXPECT_EQ(error_of([] {
              write_pytorch_csv_comms(require_valid(traces::parse_schedule_text("0F0 0R0 0B0")));
            }),
            "text recomputes (0R0), which PyTorch's CSV has no words for; convert it to native or "
            "text");
  Schedule replicated = read("0F0,0F1,0B0,0B1\n");
  replicated.replicas_of_stage = {2};
  EXPECT_EQ(error_of([&] { traces::write_pytorch_csv(replicated); }),
            "f shares stage 0 among 2 ranks, which PyTorch's CSV has no words for; convert it to "
            "native");
}

/// PyTorch's own test files, where present.
class PytorchFiles : public testing::Test {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(folder_)) GTEST_SKIP() << "PyTorch's files are not in " << folder_;
  }
  std::string folder_ = reference_folder() + "/pytorch_csv/";
};

TEST_F(PytorchFiles, RoundTripByteForByte) {
  for (const char* name : {"dualpipev_4rank_10mb.csv", "zb1p_2rank_2stagep_compute.csv"}) {
    const Schedule schedule = traces::read_schedule_file(folder_ + name).schedule;
    EXPECT_TRUE(validate(schedule).empty()) << name;
    EXPECT_EQ(traces::write_pytorch_csv(schedule), traces::read_file(folder_ + name)) << name;
  }
  const std::string comms = folder_ + "zb1p_2rank_2stagep_comms.csv";
  const Schedule schedule = traces::read_schedule_file(comms).schedule;
  EXPECT_TRUE(validate(schedule).empty());
  EXPECT_EQ(write_pytorch_csv_comms(schedule, {PytorchRelease::kFrom26}), traces::read_file(comms));
}

TEST_F(PytorchFiles, OfTheOldGrammarAreRefusedWithAHint) {
  const std::string path = folder_ + "zb1p_2rank_2stagep_compute.oldgrammar.csv";
  EXPECT_EQ(error_of([&] { traces::read_schedule_file(path); }),
            path +
                ":1:7: '2W0' is next to 2B0, as before PyTorch 2.6, when B was the input "
                "gradient; write 2I0 for it");
}

}  // namespace
}  // namespace bubblescope::tests

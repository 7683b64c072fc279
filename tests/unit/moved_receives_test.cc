// Tests the moves that make one posted list of another: whoever applies them gets that list.
#include "sim/analysis/moved_receives.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "sim/analysis/suggest_receives.h"
#include "sim/engine/simulate.h"
#include "sim/ir/pytorch_lists.h"
#include "sim/ir/shard_stages.h"
#include "tests/support/as_written.h"
#include "tests/support/recorded_step.h"
#include "traces/schedules/text_schedule.h"

namespace bubblescope::tests {
namespace {

/// Does what a reader of the moves does, one after the other.
RankOrder follow(RankOrder list, const std::vector<MovedReceive>& moves) {
  for (const MovedReceive& move : moves) {
    const auto taken = std::find(list.begin(), list.end(), move.receive);
    EXPECT_NE(taken, list.end());
    list.erase(taken);
    auto at = list.begin();
    std::int32_t left = move.occurrence;
    while (move.before && at != list.end() && !(*at == *move.before && --left == 0)) ++at;
    list.insert(move.before ? at : list.end(), move.receive);
  }
  return list;
}

RankOrder list_of(const std::string& text) {
  return traces::parse_schedule_text(text + " | 1F0").posted.at(0);
}

std::string moves_text(const std::string& from, const std::string& to) {
  const auto moves = find_moved_receives(0, list_of(from), list_of(to));
  if (!moves) return "other cells";
  EXPECT_EQ(follow(list_of(from), *moves), list_of(to));
  std::string text;
  for (const MovedReceive& move : *moves) text += to_string(move) + "\n";
  return text;
}

TEST(MovedReceives, AreAsFewAsPossible) {
  EXPECT_EQ(moves_text("0F0 0SEND_F0 0RECV_B0 0B0", "0F0 0RECV_B0 0SEND_F0 0B0"),
            "rank 0: post 0RECV_B0 before 0SEND_F0\n");
  EXPECT_EQ(moves_text("0F0 0RECV_B0 0RECV_B1 0B0", "0F0 0RECV_B1 0RECV_B0 0B0"),
            "rank 0: post 0RECV_B1 before 0RECV_B0\n");
  EXPECT_EQ(moves_text("0RECV_B0 0F0 0B0", "0F0 0B0 0RECV_B0"),
            "rank 0: post 0RECV_B0 at the end\n");
  EXPECT_EQ(moves_text("0F0 0RECV_B0 0B0", "0F0 0RECV_B0 0B0"), "");
}

TEST(MovedReceives, CountCellsThatAreNoOps) {
  EXPECT_EQ(moves_text("0UNSHARD 0F0 0SEND_F0 0WAIT_SEND_F0 0RECV_B0 0B0",
                       "0UNSHARD 0F0 0RECV_B0 0SEND_F0 0WAIT_SEND_F0 0B0"),
            "rank 0: post 0RECV_B0 before 0SEND_F0\n");
  EXPECT_EQ(moves_text("0UNSHARD 0F0 0RESHARD 0UNSHARD 0F1 0RECV_B0",
                       "0UNSHARD 0F0 0RESHARD 0RECV_B0 0UNSHARD 0F1"),
            "rank 0: post 0RECV_B0 before 0UNSHARD (number 2 of them)\n");
  EXPECT_EQ(moves_text("0F0 0SEND_F0", "0SEND_F0 0F0"), "other cells");
}

/// The lists that PyTorch posts late, with the cells of a release.
ValidSchedule posted_late(const RecordedStep& step, PytorchRelease release, bool is_sharded) {
  Schedule schedule = *step.schedule;
  if (is_sharded) schedule = *shard_stages(step.schedule, release);
  PytorchListOptions options;
  options.release = release;
  options.posting = ReceivePosting::kDeferred;
  schedule.posted = make_pytorch_lists(require_valid(schedule), options);
  return require_valid(std::move(schedule));
}

// Lists whose receives are moved as the suggestion says are legal, and take the time that it
// states, whatever other cells there are.
TEST(MovedReceives, GiveTheSuggestedTimeInEveryReleaseAndMode) {
  int suggestions = 0;
  for (const RecordedStep& step : every_schedule({}))
    for (const PytorchRelease release : {PytorchRelease::kFrom26, PytorchRelease::kFrom215})
      for (const bool is_sharded : {false, true}) {
        if (!step.schedule->graph.is_chain() || !step.schedule->posted.empty()) continue;
        const ValidSchedule late = posted_late(step, release, is_sharded);
        const CostModel costs = spread(UniformCost{}, *late);
        for (const P2pMode mode :
             {P2pMode::kRendezvous, P2pMode::kHostRendezvous, P2pMode::kHostSend, P2pMode::kFifo}) {
          const LowerOptions options{.mode = mode};
          const auto suggestion = suggest_receives(late, options, costs);
          if (!suggestion) continue;
          ++suggestions;
          Schedule moved = *late;
          for (std::size_t rank = 0; rank < moved.posted.size(); ++rank) {
            std::vector<MovedReceive> own;
            for (const MovedReceive& move : suggestion->moves)
              if (move.rank == static_cast<std::int32_t>(rank)) own.push_back(move);
            moved.posted[rank] = follow(moved.posted[rank], own);
          }
          const auto lowered = lower(require_valid(std::move(moved)), options);
          const auto* const program = std::get_if<Program>(&lowered);
          ASSERT_NE(program, nullptr) << late->name << "\n" << to_string(*suggestion);
          EXPECT_EQ(compute_makespan(simulate(*program, costs)), suggestion->makespan)
              << late->name;
        }
      }
  EXPECT_GT(suggestions, 50);
}

}  // namespace
}  // namespace bubblescope::tests

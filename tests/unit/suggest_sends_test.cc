// Sends that are posted after an op that needs what they lead to.
#include "sim/analysis/suggest_sends.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/support/old_pytorch_lists.h"
#include "traces/schedules/text_schedule.h"

namespace bubblescope::tests {
namespace {

// Rank 0 sends what rank 1 needs for 1B0 only after 0B0, which needs 1B0.
constexpr const char* kLateSend = "0F0 0RECV_B0 0B0 0SEND_F0 | 1RECV_F0 1F0 1B0 1SEND_B0";

std::string suggest(const std::string& text, P2pMode mode) {
  const ValidSchedule schedule = require_valid(traces::parse_schedule_text(text));
  LowerOptions options;
  options.mode = mode;
  const auto found = suggest_sends(schedule, options, spread(UniformCost{}, schedule));
  return found ? to_string(*found) : "";
}

TEST(SuggestSends, NamesTheSendThatIsTooLate) {
  for (const P2pMode mode : {P2pMode::kFifo, P2pMode::kRendezvous, P2pMode::kHostSend})
    EXPECT_EQ(suggest(kLateSend, mode),
              "rank 0: post 0SEND_F0 directly after 0F0, not after 0B0\nremoves the deadlock\n");
}

TEST(SuggestSends, IsSilentWhereListsRunOrNothingIsPosted) {
  EXPECT_EQ(suggest(kOldLists, P2pMode::kFifo), "");
  EXPECT_EQ(suggest("0F0 0B0 | 1F0 1B0", P2pMode::kRendezvous), "");
}

}  // namespace
}  // namespace bubblescope::tests

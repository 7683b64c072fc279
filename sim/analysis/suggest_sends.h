// Finds the sends that are posted too late: no order of the receives removes such a deadlock.
//
//   rank 0: post 0SEND_F0 directly after 0F0, not after 0B0
//   removes the deadlock
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/analysis/suggest_receives.h"
#include "sim/ir/lower.h"
#include "sim/model/cost_model.h"

namespace bubblescope::inline sim {

/// A send that changes its position.
struct MovedSend {
  std::int32_t rank = 0;
  Op send;
  Op producer;  ///< the op directly after which it is now posted
  Op before;    ///< the op or receive after which it was posted
};

struct SendSuggestion {
  std::vector<MovedSend> moves;
  /// The receives to move as well; empty if the sends alone remove the deadlock.
  std::optional<ReceiveSuggestion> receives;
};

/// Suggests sends to post directly after the op that produces their content, so that lists run that
/// would deadlock. If few are enough, it finds the fewest. Empty if the lists run as they are, if
/// moving sends does not help, and for schedules without posted messages. Throws as lower() does.
std::optional<SendSuggestion> suggest_sends(const ValidSchedule& schedule,
                                            const LowerOptions& options, const CostModel& costs);

/// One line per move, those of receives after those of sends, then the gain.
std::string to_string(const SendSuggestion& suggestion);

}  // namespace bubblescope::inline sim

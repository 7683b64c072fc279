// Stretching: makes longer steps from shorter ones by repeating a part of the steady state.
#pragma once

#include <optional>

#include "schedules/search/asap_clock.h"

namespace bubblescope::schedules {

/// A step to be stretched, with the clock that timed its order last.
struct BriefStep {
  const SearchProblem& problem;
  const TokenOrder& order;
  const AsapClock& clock;
};

/// `brief` is a step of the same problem with fewer micro-batches. On every rank, the ops around
/// `moment` that contain each token once are repeated for the missing micro-batches. Empty if a
/// rank has no such ops. The result may block, so the caller must time it.
std::optional<TokenOrder> stretch(const SearchProblem& problem, const BriefStep& brief,
                                  Nanos moment);

}  // namespace bubblescope::schedules

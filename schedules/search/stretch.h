// Longer steps from shorter ones: repeats what every rank does around a moment of the steady state.
#pragma once

#include <optional>

#include "schedules/search/asap_clock.h"

namespace bubblescope {

/// `order` is one of `brief`, the same problem as `problem` with fewer micro-batches, and the one
/// that `clock` timed last. On every rank, the ops around `moment` that take each token once are
/// repeated for the missing micro-batches. Empty where a rank has no such ops. The result may
/// block: whoever uses it times it.
std::optional<TokenOrder> stretch(const SearchProblem& problem, const SearchProblem& brief,
                                  const TokenOrder& order, const AsapClock& clock, Nanos moment);

}  // namespace bubblescope

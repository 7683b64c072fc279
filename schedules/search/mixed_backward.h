// Orders that mix full and split backwards, for costs where a full backward is shorter than its two
// halves.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "schedules/search/search_effort.h"
#include "schedules/search/search_problem.h"

namespace bubblescope::schedules {

/// The same step with split and with full backwards.
struct MixedProblem {
  SearchProblem split;
  SearchProblem full;

  /// A relaxation with split backwards: every mixed order has a counterpart here that takes no
  /// longer. Its halves are no longer than their own, and together no longer than the full
  /// backward, so its bounds hold for mixed orders.
  SearchProblem relaxed() const;
};

/// True if mixing can pay: a full backward is shorter than its halves on some stage, or its first
/// half alone takes memory.
bool can_mix(const MixedProblem& problem);

/// [rank]: tokens of the split problem; an input gradient with kWholeBackward added is a full
/// backward.
using MixedOrder = std::vector<std::vector<Token>>;
inline constexpr Token kWholeBackward = 128;
inline bool is_whole(Token token) { return token >= kWholeBackward; }
inline Token without_whole(Token token) { return static_cast<Token>(token % kWholeBackward); }

/// True where a full backward can pay on a stage: it is shorter than its halves, or the first half
/// alone takes memory.
bool full_can_pay(const MixedProblem& problem, std::int32_t stage);

/// Converts an order of either kind to a mixed one.
MixedOrder to_mixed(const SearchProblem& problem, const TokenOrder& order);

/// The longest span (or step) of an order; empty if it blocks or breaks a cap.
std::optional<Nanos> measure_mixed(const MixedProblem& problem, const MixedOrder& order);

/// Joins halves, splits backwards and moves ops as long as the order does not get longer.
MixedOrder improve_mixed(const MixedProblem& problem, MixedOrder order, const SearchEffort& effort);

Schedule to_schedule(const MixedProblem& problem, const MixedOrder& order);

}  // namespace bubblescope::schedules

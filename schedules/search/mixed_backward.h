// Orders that mix full and split backwards. They can pay if a full backward takes less time than
// its two halves.
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

  /// A relaxation with split backwards: every mixed order corresponds to an order of this problem
  /// that takes no longer, so its bounds hold for mixed orders. Each half takes no longer than in
  /// `split`, and both together no longer than the full backward.
  SearchProblem relaxed() const;
};

/// Whether mixing can pay on some stage: a full backward takes less time than its halves, or its
/// first half alone takes memory.
bool can_mix(const MixedProblem& problem);

/// The tokens of each rank, as in the split problem. An input gradient with kWholeBackward added is
/// a full backward.
using MixedOrder = std::vector<std::vector<Token>>;
inline constexpr Token kWholeBackward = 128;
inline bool is_whole(Token token) { return token >= kWholeBackward; }
inline Token without_whole(Token token) { return static_cast<Token>(token % kWholeBackward); }

/// Whether a full backward can pay on a stage: it takes less time than its halves, or its first
/// half alone takes memory.
bool full_can_pay(const MixedProblem& problem, std::int32_t stage);

/// Converts an order of either kind to a mixed one.
MixedOrder to_mixed(const SearchProblem& problem, const TokenOrder& order);

/// Returns the longest span (or step) of an order; empty if the order deadlocks or breaks a cap.
std::optional<Nanos> measure_mixed(const MixedProblem& problem, const MixedOrder& order);

/// Improves an order by joining halves, splitting backwards and moving ops. The result is no longer
/// than `order`.
MixedOrder improve_mixed(const MixedProblem& problem, MixedOrder order, const SearchEffort& effort);

Schedule to_schedule(const MixedProblem& problem, const MixedOrder& order);

}  // namespace bubblescope::schedules

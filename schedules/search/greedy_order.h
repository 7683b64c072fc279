// The result of a greedy heuristic under memory caps.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "schedules/search/search_problem.h"

namespace bubblescope {

struct GreedyOrder {
  std::optional<TokenOrder> order;  ///< empty if a cap cannot be kept or the order is too long
  /// The largest amount of memory on a rank that passed a cap test: any cap between this and the
  /// problem's own gives the same order.
  std::int64_t most_fitted = 0;
};

}  // namespace bubblescope

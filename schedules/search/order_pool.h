// The best orders found so far.
#pragma once

#include <optional>
#include <vector>

#include "schedules/search/local_search.h"

namespace bubblescope::schedules {

/// Times orders and keeps the best few with different scores.
class OrderPool {
 public:
  explicit OrderPool(const SearchProblem& problem) : problem_(problem), clock_(problem) {}

  /// Returns the order's score; empty, and the order is dropped, if it blocks or breaks a cap.
  std::optional<Score> offer(const std::optional<TokenOrder>& order);

  const SearchProblem& problem() const { return problem_; }
  bool empty() const { return kept_.empty(); }
  const TimedOrder& best() const { return kept_.front(); }
  const std::vector<TimedOrder>& kept() const { return kept_; }

  /// Improves each of the kept orders by local search; they share its evaluations.
  void improve_all(SearchLimits climb);

 private:
  void keep(TimedOrder candidate);

  const SearchProblem& problem_;
  AsapClock clock_;
  std::vector<TimedOrder> kept_;  ///< the best first
};

}  // namespace bubblescope::schedules

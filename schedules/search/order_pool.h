// The best orders met so far.
#pragma once

#include <optional>
#include <vector>

#include "schedules/search/local_search.h"

namespace bubblescope {

/// Times orders and keeps the best few, of different scores.
class OrderPool {
 public:
  explicit OrderPool(const SearchProblem& problem) : problem_(problem), clock_(problem) {}

  /// The order's score; empty, and the order forgotten, if it blocks or breaks a cap.
  std::optional<Score> offer(const std::optional<TokenOrder>& order);

  const SearchProblem& problem() const { return problem_; }
  bool empty() const { return kept_.empty(); }
  const TimedOrder& best() const { return kept_.front(); }
  const std::vector<TimedOrder>& kept() const { return kept_; }

  /// Climbs from each of the kept orders, which share the climb's evaluations.
  void improve_all(Climb climb);

 private:
  void keep(TimedOrder candidate);

  const SearchProblem& problem_;
  AsapClock clock_;
  std::vector<TimedOrder> kept_;  ///< the best first
};

}  // namespace bubblescope

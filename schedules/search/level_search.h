// Searches one placement at one memory level.
#pragma once

#include <optional>
#include <vector>

#include "schedules/search/local_search.h"
#include "schedules/search/mixed_backward.h"
#include "schedules/search/schedule_search.h"

namespace bubblescope::schedules {

/// Searches for orders with one kind of backward. The constructor runs the heuristics; refine()
/// searches longer.
class OrderRefinement {
 public:
  OrderRefinement(SearchProblem problem, const ScheduleRequest& request, const SearchGoal& goal);

  const SearchProblem& problem() const { return problem_; }
  const TokenOrder& order() const { return best_.order; }
  Nanos value() const { return best_.score.span; }
  Nanos bound() const { return bound_; }  ///< no order of this problem is shorter

  /// Searches for better orders. Half of the effort goes into the exact search if that can be
  /// complete.
  void refine(std::int64_t effort);

 private:
  bool is_settled() const { return bound_ >= value(); }
  std::int64_t search_exactly(std::int64_t effort);
  void climb(std::uint64_t seed);
  void take(const TokenOrder& order);

  SearchProblem problem_;
  const SearchGoal& goal_;
  Nanos granularity_;
  TimedOrder best_;
  Nanos bound_ = 0;
};

/// The search problems of one placement.
struct LevelProblem {
  std::optional<SearchProblem> split;  ///< if the times of the halves are known
  std::optional<SearchProblem> full;   ///< if full backwards can pay

  /// Returns the problem whose caps define the memory levels.
  const SearchProblem& any() const { return split ? *split : *full; }
  /// A problem whose bound holds for split and full backwards and for their mixes.
  SearchProblem relaxed() const;
  /// Whether the caps allow one micro-batch.
  bool has_order() const;
  /// Returns the same problems with these caps.
  LevelProblem with_caps(const std::vector<std::int64_t>& caps) const;
};

/// Searches both kinds of backwards, and mixes of them if mixing can pay.
class LevelSearch {
 public:
  LevelSearch(const LevelProblem& problem, const ScheduleRequest& request, const SearchGoal& goal);

  Nanos value() const;
  Nanos bound() const;  ///< no schedule of this placement within the caps is shorter
  Schedule schedule() const;
  void refine(std::int64_t effort);

 private:
  std::int64_t try_all_mixes(std::int64_t effort);
  void mix(std::int64_t effort);
  void take(MixedOrder order);

  const SearchGoal& goal_;
  std::vector<OrderRefinement> kinds_;      ///< the searches with split and with full backwards
  std::optional<MixedProblem> mixed_;       ///< if mixing can pay
  std::optional<OrderRefinement> relaxed_;  ///< bounds the mixed orders
  MixedOrder mixed_order_;
  Nanos mixed_value_ = 0;
  Nanos mixed_bound_ = 0;  ///< a bound that the search of mixes proved
};

}  // namespace bubblescope::schedules

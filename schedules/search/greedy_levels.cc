// Steps from one cap to the next at which a greedy heuristic decides differently.
#include "schedules/search/greedy_levels.h"

#include <algorithm>
#include <limits>

#include "schedules/search/arrival_greedy.h"
#include "schedules/search/cap_ladder.h"
#include "schedules/search/v_greedy.h"

namespace bubblescope::schedules {

namespace {

constexpr Nanos kAnyLength = std::numeric_limits<Nanos>::max();

/// Offers the orders found under `capped` that are shorter than `too_long`. Returns the smallest
/// cap under which they would be the same.
std::int64_t offer_within(OrderPool& pool, const SearchProblem& capped, Nanos too_long) {
  std::int64_t same_from = 0;
  const auto offer = [&](const GreedyOrder& found) {
    pool.offer(found.order);
    same_from = std::max(same_from, found.max_fitted);
  };
  if (capped.fused) return same_from;
  if (capped.chunks == 1)
    for (const GreedyRule& rule : all_greedy_rules())
      offer(greedy_by_arrivals(capped, rule, too_long));
  if (is_v_placement(capped))
    for (const VGreedyRule& rule : all_v_greedy_rules()) offer(v_greedy(capped, rule));
  return same_from;
}

}  // namespace

void offer_greedy_orders(OrderPool& pool) { offer_within(pool, pool.problem(), kAnyLength); }

void offer_greedy_orders_of_all_levels(OrderPool& pool) {
  const SearchProblem& problem = pool.problem();
  SearchProblem capped = problem;
  while (min_caps_hold(capped) &&
         (pool.empty() || may_be_shorter(capped, pool.best().score.span))) {
    const Nanos too_long = pool.empty() ? kAnyLength : pool.best().score.span;
    capped = cap_problem(problem, offer_within(pool, capped, too_long) - 1);
  }
}

}  // namespace bubblescope::schedules

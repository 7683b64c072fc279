// Steps from one cap to the next at which a greedy heuristic decides differently.
#include "schedules/search/greedy_levels.h"

#include <algorithm>
#include <limits>

#include "schedules/search/arrival_greedy.h"
#include "schedules/search/cap_ladder.h"
#include "schedules/search/v_greedy.h"

namespace bubblescope {

namespace {

constexpr Nanos kAnyLength = std::numeric_limits<Nanos>::max();

/// Offers the orders found under `capped` that are shorter than `too_long`. Returns the smallest
/// cap under which they would be the same.
std::int64_t offer_under(OrderPool& pool, const SearchProblem& capped, Nanos too_long) {
  std::int64_t same_from = 0;
  const auto offer = [&](const GreedyOrder& found) {
    pool.offer(found.order);
    same_from = std::max(same_from, found.most_fitted);
  };
  if (capped.fused) return same_from;
  if (capped.chunks == 1)
    for (const GreedyRule& rule : every_greedy_rule())
      offer(greedy_by_arrivals(capped, rule, too_long));
  if (lies_in_v(capped))
    for (const VGreedyRule& rule : every_v_greedy_rule()) offer(v_greedy(capped, rule));
  return same_from;
}

}  // namespace

void offer_greedy_orders(OrderPool& pool) { offer_under(pool, pool.problem(), kAnyLength); }

void offer_greedy_orders_of_all_levels(OrderPool& pool) {
  const SearchProblem& problem = pool.problem();
  SearchProblem capped = problem;
  while (least_caps_hold(capped) &&
         (pool.empty() || may_be_shorter(capped, pool.best().score.span))) {
    const Nanos too_long = pool.empty() ? kAnyLength : pool.best().score.span;
    capped = capped_problem(problem, offer_under(pool, capped, too_long) - 1);
  }
}

}  // namespace bubblescope

// Keeps the best orders.
#include "schedules/search/order_pool.h"

#include <algorithm>
#include <utility>

namespace bubblescope::schedules {

namespace {

constexpr std::size_t kKept = 6;

}  // namespace

std::optional<Score> OrderPool::offer(const std::optional<TokenOrder>& order) {
  if (!order) return std::nullopt;
  if (!fits_everywhere(problem_, *order)) return std::nullopt;
  const std::optional<Score> score = clock_.time(*order);
  if (score && (kept_.size() < kKept || *score < kept_.back().score)) keep({*order, *score});
  return score;
}

void OrderPool::improve_all(SearchLimits climb) {
  const std::vector<TimedOrder> starts = kept_;
  climb.evaluations /= static_cast<std::int64_t>(starts.size());
  for (const TimedOrder& start : starts)
    if (best().score.span > climb.bound && !stopped(climb.stop))
      keep(improve(problem_, clock_, start, climb));
}

void OrderPool::keep(TimedOrder candidate) {
  const auto place =
      std::lower_bound(kept_.begin(), kept_.end(), candidate,
                       [](const TimedOrder& a, const TimedOrder& b) { return a.score < b.score; });
  if (place != kept_.end() && place->score == candidate.score) return;
  kept_.insert(place, std::move(candidate));
  if (kept_.size() > kKept) kept_.pop_back();
}

}  // namespace bubblescope::schedules

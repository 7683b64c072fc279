// Keeping the best orders.
#include "schedules/search/order_pool.h"

#include <algorithm>
#include <utility>

namespace bubblescope {

namespace {

constexpr std::size_t kKept = 6;

}  // namespace

std::optional<Score> OrderPool::offer(const std::optional<TokenOrder>& order) {
  if (!order) return std::nullopt;
  const auto per_rank = static_cast<std::size_t>(problem_.ops_per_rank());
  for (std::int32_t rank = 0; rank < problem_.ranks; ++rank)
    if (!fits(problem_, rank, order->data() + static_cast<std::size_t>(rank) * per_rank))
      return std::nullopt;
  const std::optional<Score> score = clock_.time(*order);
  if (score && (kept_.size() < kKept || *score < kept_.back().score)) keep({*order, *score});
  return score;
}

void OrderPool::improve_all(Nanos bound, std::int64_t evaluations) {
  const std::vector<TimedOrder> starts = kept_;
  for (const TimedOrder& start : starts)
    if (best().score.span > bound)
      keep(improve(problem_, clock_, start, bound,
                   evaluations / static_cast<std::int64_t>(starts.size())));
}

void OrderPool::keep(TimedOrder candidate) {
  const auto place =
      std::lower_bound(kept_.begin(), kept_.end(), candidate,
                       [](const TimedOrder& a, const TimedOrder& b) { return a.score < b.score; });
  if (place != kept_.end() && place->score == candidate.score) return;
  kept_.insert(place, std::move(candidate));
  if (kept_.size() > kKept) kept_.pop_back();
}

}  // namespace bubblescope

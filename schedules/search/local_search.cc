// Late acceptance hill climbing (Burke and Bykov) over token orders.
#include "schedules/search/local_search.h"

#include <algorithm>
#include <array>

#include "schedules/search/xorshift.h"

namespace bubblescope::schedules {

namespace {

/// Moves the token at `from` to `to`; positions count over all ranks.
struct Move {
  std::size_t from = 0;
  std::size_t to = 0;
};

void apply(TokenOrder& order, Move move) {
  const auto at = [&](std::size_t index) {
    return order.begin() + static_cast<std::ptrdiff_t>(index);
  };
  if (move.from < move.to)
    std::rotate(at(move.from), at(move.from + 1), at(move.to + 1));
  else
    std::rotate(at(move.to), at(move.from), at(move.from + 1));
}

class HillClimber {
 public:
  HillClimber(const SearchProblem& problem, AsapClock& clock, const TimedOrder& from,
              std::uint64_t seed)
      : problem_(problem), clock_(clock), current_(from), best_(from), random_(seed) {
    history_.fill(from.score);
    clock_.time(current_.order);
    trace();
  }

  TimedOrder climb(const SearchLimits& climb) {
    for (std::int64_t turn = 0; turn < climb.evaluations && best_.score.span > climb.bound;
         ++turn) {
      if (stopped(climb.stop)) break;
      const Move move = pick();
      if (changes(move)) try_move(move, history_[static_cast<std::size_t>(turn) % history_.size()]);
    }
    return best_;
  }

 private:
  /// Finds the critical path of the longest rank, last op first.
  void trace() {
    path_.clear();
    const auto per_rank = static_cast<std::size_t>(problem_.ops_per_rank());
    std::optional<std::size_t> at =
        (static_cast<std::size_t>(clock_.longest_rank()) + 1) * per_rank - 1;
    while (at) {
      path_.push_back(*at);
      at = clock_.cause(current_.order, *at);
    }
  }

  /// Picks a random op of a random block: a run of the path on one rank without a wait.
  Move pick() {
    const std::size_t on_path = random_.below(path_.size());
    std::size_t newest = on_path;
    std::size_t oldest = on_path;
    while (newest > 0 && path_[newest - 1] == path_[newest] + 1) --newest;
    while (oldest + 1 < path_.size() && path_[oldest + 1] + 1 == path_[oldest]) ++oldest;
    const std::size_t from = path_[on_path];
    const std::size_t first = path_[oldest];
    const std::size_t last = path_[newest];
    switch (random_.below(4)) {
      case 0: return {from, first};
      case 1: return {from, last};
      case 2: return {from, first + random_.below(last - first + 1)};
      default: return neighbour(from);
    }
  }

  Move neighbour(std::size_t from) {
    const auto per_rank = static_cast<std::size_t>(problem_.ops_per_rank());
    const std::size_t begin = from / per_rank * per_rank;
    const std::size_t reach = 1 + random_.below(4);
    if (random_.below(2) == 0) return {from, from < begin + reach ? begin : from - reach};
    return {from, std::min(from + reach, begin + per_rank - 1)};
  }

  bool changes(Move move) const {
    const auto [low, high] = std::minmax(move.from, move.to);
    for (std::size_t at = low; at <= high; ++at)
      if (current_.order[at] != current_.order[move.from]) return true;
    return false;
  }

  void try_move(Move move, Score& late) {
    apply(current_.order, move);
    const auto per_rank = static_cast<std::size_t>(problem_.ops_per_rank());
    const std::size_t rank = move.from / per_rank;
    std::optional<Score> score;
    if (fits(problem_, static_cast<std::int32_t>(rank), current_.order.data() + rank * per_rank))
      score = clock_.time(current_.order);
    if (!score || (*score > late && *score > current_.score)) {
      apply(current_.order, {move.to, move.from});
    } else {
      current_.score = *score;
      trace();
      if (current_.score < best_.score) best_ = current_;
    }
    late = std::min(late, current_.score);
  }

  const SearchProblem& problem_;
  AsapClock& clock_;
  TimedOrder current_;
  TimedOrder best_;
  std::array<Score, 50> history_;
  std::vector<std::size_t> path_;
  XorShift64 random_;
};

}  // namespace

TimedOrder improve(const SearchProblem& problem, AsapClock& clock, const TimedOrder& from,
                   const SearchLimits& climb) {
  return HillClimber(problem, clock, from, climb.seed).climb(climb);
}

}  // namespace bubblescope::schedules

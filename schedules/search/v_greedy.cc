// Builds an order for a V-shaped placement in rounds of one input gradient and one forward.
#include "schedules/search/v_greedy.h"

#include <algorithm>
#include <utility>

namespace bubblescope::schedules {

namespace {

class VGreedy {
 public:
  /// `idle_before` [rank] is each rank's idle time in an earlier run. Its maximum limits how long
  /// other ranks may be idle.
  VGreedy(const SearchProblem& problem, const VGreedyRule& rule,
          const std::vector<Nanos>& idle_before)
      : problem_(problem),
        rule_(rule),
        prefix_(problem),
        granted_(static_cast<std::size_t>(problem.ranks), 0) {
    if (idle_before.empty()) return;
    const Nanos max_before = *std::max_element(idle_before.begin(), idle_before.end());
    for (std::size_t rank = 0; rank < granted_.size(); ++rank)
      granted_[rank] = max_before - idle_before[rank];
  }

  /// Builds the order. May be called only once.
  GreedyOrder run() {
    const bool complete = run_all();
    max_idle_ = prefix_.max_idle();
    for (std::int32_t rank = 0; rank < problem_.ranks; ++rank)
      idle_.push_back(prefix_.at(rank).idle);
    return std::move(prefix_).finish(complete);
  }

  Nanos max_idle() const { return max_idle_; }              ///< in the run
  const std::vector<Nanos>& idle() const { return idle_; }  ///< the same: [rank]

 private:
  bool run_all() {
    if (!warm_up()) return false;
    for (std::int32_t round = 0; round < 2 * problem_.microbatches; ++round)
      if (!run_gradients() || !run_forwards()) return false;
    for (std::int32_t rank = 0; rank < problem_.ranks; ++rank) prefix_.run_all_weights(rank);
    return true;
  }

  std::int32_t count(std::int32_t rank, std::int32_t chunk, Step step) const {
    return prefix_.count(rank, token_of(chunk, step));
  }
  bool has_left(std::int32_t rank, std::int32_t chunk, Step step) const {
    return prefix_.has_left(rank, token_of(chunk, step));
  }
  bool has_arrived(std::int32_t rank, Token token) const {
    return prefix_.arrival(rank, token).has_value();
  }
  bool put_forward(std::int32_t rank, std::int32_t chunk) {
    return prefix_.put(rank, token_of(chunk, Step::kForward));
  }

  /// Runs W's while the rank would wait for an op; the last one may overrun the wait.
  void fill_wait(std::int32_t rank, Token token, bool overrun) {
    const Nanos ready = prefix_.arrival(rank, token).value_or(0);
    if (!prefix_.fill_wait(rank, ready) || !overrun) return;
    const GreedyPrefix::Rank& state = prefix_.at(rank);
    const Nanos granted = granted_[static_cast<std::size_t>(rank)];
    const Nanos bearable = std::max(prefix_.max_idle(), granted) - state.idle;
    if (ready - state.free > bearable) prefix_.run_weight(rank);
  }

  /// Runs F's of chunk 0 on each rank in turn, as many as fit before the first F of chunk 1
  /// returns; then F's of both chunks until no rank is behind the previous one.
  bool warm_up() {
    for (std::int32_t rank = 0; rank < problem_.ranks; ++rank)
      if (!put_forward(rank, 0)) return false;
    for (std::int32_t rank = problem_.ranks - 1; rank >= 0; --rank) {
      while (rank + 1 < problem_.ranks && has_time_before_return(rank))
        for (std::int32_t above = 0; above <= rank; ++above)
          if (!put_forward(above, 0)) return false;
      if (!put_forward(rank, 1)) return false;
    }
    std::int32_t chunk = 0;
    for (std::int32_t rank = 1; rank < problem_.ranks; ++rank)
      while (is_behind(rank)) {
        for (std::int32_t below = problem_.ranks - 1; below >= rank; --below)
          if (has_left(below, chunk, Step::kForward) && !put_forward(below, chunk)) return false;
        chunk = 1 - chunk;
      }
    return true;
  }

  /// Whether one more F of chunk 0 ends before the first F of chunk 1 arrives, and leaves enough
  /// memory for what earlier ranks must hold by then.
  bool has_time_before_return(std::int32_t rank) {
    const Token token = token_of(0, Step::kForward);
    const GreedyPrefix::Rank& state = prefix_.at(rank);
    const Nanos end = state.free + problem_.duration_of(rank, token);
    const std::optional<Nanos> returns = prefix_.arrival(rank, token_of(1, Step::kForward));
    return has_left(rank, 0, Step::kForward) && returns && end <= *returns &&
           prefix_.fits(rank, state.held + problem_.memory_of(rank, token) * (2 + 2 * rank));
  }

  bool is_behind(std::int32_t rank) const {
    const auto forwards = [&](std::int32_t of, std::int32_t chunk) {
      return count(of, chunk, Step::kForward);
    };
    return forwards(rank, 0) + forwards(rank, 1) < forwards(rank - 1, 0) + forwards(rank - 1, 1) ||
           (forwards(rank, 1) <= forwards(rank - 1, 1) &&
            forwards(rank - 1, 1) < problem_.microbatches);
  }

  /// The chunk of the next I: chunk 1 until an I of chunk 0 can follow it.
  std::int32_t gradient_chunk(std::int32_t rank) const {
    if (count(rank, 0, Step::kInputGrad) >= count(rank, 1, Step::kInputGrad)) return 1;
    const bool can_follow = has_arrived(rank, token_of(0, Step::kInputGrad));
    return can_follow || !has_left(rank, 1, Step::kInputGrad) ? 0 : 1;
  }

  bool run_gradient(std::int32_t rank, std::int32_t chunk) {
    const Token token = token_of(chunk, Step::kInputGrad);
    fill_wait(rank, token, chunk == 0 || rule_.fill_before_gradient);
    return prefix_.put(rank, token);
  }

  /// Runs one I per rank: those of chunk 0 starting at the last rank, then those of chunk 1
  /// starting at the first.
  bool run_gradients() {
    std::vector<std::int32_t> chunk;
    for (std::int32_t rank = 0; rank < problem_.ranks; ++rank) {
      if (!prefix_.free_memory(rank, token_of(0, Step::kInputGrad))) return false;
      chunk.push_back(gradient_chunk(rank));
    }
    for (std::int32_t rank = problem_.ranks - 1; rank >= 0; --rank)
      if (chunk[static_cast<std::size_t>(rank)] == 0 && !run_gradient(rank, 0)) return false;
    for (std::int32_t rank = 0; rank < problem_.ranks; ++rank)
      if (chunk[static_cast<std::size_t>(rank)] == 1 && !run_gradient(rank, 1)) return false;
    return true;
  }

  /// The next F: chunk 1's if its input has been produced, otherwise chunk 0's; empty if neither
  /// can run.
  std::optional<Token> next_forward(std::int32_t rank) const {
    const Token away = token_of(0, Step::kForward);
    const Token back = token_of(1, Step::kForward);
    if (prefix_.count(rank, back) < prefix_.count(rank, away) && has_arrived(rank, back))
      return back;
    if (!prefix_.has_left(rank, away) || !has_arrived(rank, away)) return std::nullopt;
    return away;
  }

  bool run_forwards() {
    for (std::int32_t rank = 0; rank < problem_.ranks; ++rank) {
      if (!has_left(rank, 1, Step::kForward)) continue;
      const std::optional<Token> token = next_forward(rank);
      if (!token) continue;
      if (!prefix_.free_memory(rank, *token)) return false;
      fill_wait(rank, *token, rule_.fill_before_forward);
      if (!prefix_.put(rank, *token)) return false;
    }
    return true;
  }

  const SearchProblem& problem_;
  const VGreedyRule& rule_;
  GreedyPrefix prefix_;
  std::vector<Nanos> granted_;  ///< [rank]: idle time that makes the step no longer
  std::vector<Nanos> idle_;
  Nanos max_idle_ = 0;
};

}  // namespace

GreedyOrder v_greedy(const SearchProblem& problem, const VGreedyRule& rule) {
  VGreedy first(problem, rule, {});
  GreedyOrder best = first.run();
  Nanos max_idle = first.max_idle();
  for (std::vector<Nanos> idle = first.idle(); best.order;) {
    VGreedy again(problem, rule, idle);
    GreedyOrder order = again.run();
    best.max_fitted = std::max(best.max_fitted, order.max_fitted);
    if (!order.order || again.max_idle() >= max_idle) break;
    max_idle = again.max_idle();
    idle = again.idle();
    best.order = std::move(order.order);
  }
  return best;
}

}  // namespace bubblescope::schedules

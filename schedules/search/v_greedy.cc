// Runs rounds of one input gradient and one forward on a V.
#include "schedules/search/v_greedy.h"

#include <algorithm>
#include <utility>

namespace bubblescope {

namespace {

constexpr Nanos kNotYet = -1;

class VGreedy {
 public:
  /// `idle_before` [rank] is from an earlier run; its maximum limits how idle other ranks may be.
  VGreedy(const SearchProblem& problem, const VGreedyRule& rule,
          const std::vector<Nanos>& idle_before)
      : problem_(problem), rule_(rule), ranks_(static_cast<std::size_t>(problem.ranks)) {
    order_.resize(static_cast<std::size_t>(problem.ops()));
    end_.assign(static_cast<std::size_t>(problem.stages()) * kSteps *
                    static_cast<std::size_t>(problem.microbatches),
                kNotYet);
    if (idle_before.empty()) return;
    const Nanos most = *std::max_element(idle_before.begin(), idle_before.end());
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank)
      ranks_[rank].granted = most - idle_before[rank];
  }

  GreedyOrder run() {
    GreedyOrder found;
    if (run_all()) found.order = std::move(order_);
    found.most_fitted = most_fitted_;
    return found;
  }

  Nanos most_idle() const { return most_idle_; }
  std::vector<Nanos> idle() const {
    std::vector<Nanos> idle;
    for (const Rank& rank : ranks_) idle.push_back(rank.idle);
    return idle;
  }

 private:
  struct Rank {
    std::array<std::int32_t, 2 * kSteps> count{};  ///< [token]
    Nanos free = 0;
    Nanos idle = 0;     ///< since the first F's end
    Nanos granted = 0;  ///< idle time that does not make the step longer
    std::int64_t held = 0;
    std::size_t written = 0;
    std::size_t first_pending = 0;
    std::vector<Token> pending;  ///< W's whose I has run
  };

  bool run_all() {
    if (!warm_up()) return false;
    for (std::int32_t round = 0; round < 2 * problem_.microbatches; ++round)
      if (!run_gradients() || !run_forwards()) return false;
    for (std::int32_t rank = 0; rank < problem_.ranks; ++rank)
      while (has_weight(rank)) run_weight(rank);
    return true;
  }

  const Rank& at(std::int32_t rank) const { return ranks_[static_cast<std::size_t>(rank)]; }
  std::int32_t count(std::int32_t rank, std::int32_t chunk, Step step) const {
    return at(rank).count[token_of(chunk, step)];
  }
  bool has_left(std::int32_t rank, std::int32_t chunk, Step step) const {
    return count(rank, chunk, step) < problem_.microbatches;
  }
  bool has_weight(std::int32_t rank) const {
    return at(rank).first_pending < at(rank).pending.size();
  }
  std::size_t made(std::int32_t stage, Step step, std::int32_t microbatch) const {
    return (static_cast<std::size_t>(stage) * kSteps + static_cast<std::size_t>(step)) *
               static_cast<std::size_t>(problem_.microbatches) +
           static_cast<std::size_t>(microbatch);
  }

  /// When the next op's input from another rank arrives; kNotYet if it has not been produced; 0 if
  /// the op needs none.
  Nanos arrival(std::int32_t rank, Token token) const {
    const std::int32_t stage = problem_.stage(rank, token);
    const Step step = step_of(token);
    const bool forward = step == Step::kForward;
    const std::int32_t input = forward ? stage - 1 : stage + 1;
    if (step == Step::kWeightGrad || input < 0 || input == problem_.stages() ||
        problem_.rank_of_stage[input] == rank)
      return 0;
    const Nanos end = end_[made(input, step, at(rank).count[token])];
    if (end == kNotYet) return kNotYet;
    return end + (forward ? problem_.forward_latency : problem_.backward_latency)[stage];
  }

  bool fits(std::int32_t rank, std::int64_t held) {
    if (held > problem_.cap[rank]) return false;
    most_fitted_ = std::max(most_fitted_, held);
    return true;
  }

  /// False if an op has no micro-batch left, no input on its own rank or no memory.
  bool put(std::int32_t rank, Token token) {
    Rank& state = ranks_[static_cast<std::size_t>(rank)];
    const std::int32_t chunk = chunk_of(token);
    const Step step = step_of(token);
    const std::int32_t next = state.count[token];
    const Nanos ready = next < problem_.microbatches ? arrival(rank, token) : kNotYet;
    if (ready == kNotYet || !fits(rank, state.held + problem_.memory_of(rank, token))) return false;
    if (step == Step::kInputGrad && count(rank, chunk, Step::kForward) <= next) return false;
    if (step == Step::kInputGrad && chunk == 0 && count(rank, 1, step) <= next) return false;
    if (step == Step::kForward && chunk == 1 && count(rank, 0, step) <= next) return false;
    const Nanos start = std::max(state.free, ready);
    if (state.count[0] > 0) state.idle += start - state.free;
    most_idle_ = std::max(most_idle_, state.idle);
    state.free = start + problem_.duration_of(rank, token);
    state.held += problem_.memory_of(rank, token);
    end_[made(problem_.stage(rank, token), step, next)] = state.free;
    order_[static_cast<std::size_t>(rank) * problem_.ops_per_rank() + state.written++] = token;
    if (step == Step::kInputGrad) state.pending.push_back(token_of(chunk, Step::kWeightGrad));
    ++state.count[token];
    return true;
  }

  bool put_forward(std::int32_t rank, std::int32_t chunk) {
    return put(rank, token_of(chunk, Step::kForward));
  }

  void run_weight(std::int32_t rank) {
    Rank& state = ranks_[static_cast<std::size_t>(rank)];
    put(rank, state.pending[state.first_pending++]);
  }

  bool make_room(std::int32_t rank, Token token) {
    while (!fits(rank, at(rank).held + problem_.memory_of(rank, token))) {
      if (!has_weight(rank)) return false;
      run_weight(rank);
    }
    return true;
  }

  Nanos weight_duration(std::int32_t rank) const {
    return problem_.duration_of(rank, at(rank).pending[at(rank).first_pending]);
  }

  /// Runs W's while the rank would wait for an op; the last one may overrun the wait.
  void fill_wait(std::int32_t rank, Token token, bool overrun) {
    const Nanos ready = arrival(rank, token);
    if (ready <= 0) return;
    while (has_weight(rank) && ready >= at(rank).free + weight_duration(rank)) run_weight(rank);
    if (!has_weight(rank) || !overrun) return;
    const Nanos bearable = std::max(most_idle_, at(rank).granted) - at(rank).idle;
    if (ready - at(rank).free > bearable) run_weight(rank);
  }

  /// Runs chunk 0's F's down the ranks, as many as fit before chunk 1's first F returns; then F's
  /// of both chunks until no rank is behind the previous one.
  bool warm_up() {
    for (std::int32_t rank = 0; rank < problem_.ranks; ++rank)
      if (!put_forward(rank, 0)) return false;
    for (std::int32_t rank = problem_.ranks - 1; rank >= 0; --rank) {
      while (rank + 1 < problem_.ranks && has_room_before_return(rank))
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

  /// Whether one more F of chunk 0 ends before chunk 1's first F arrives, and leaves memory for
  /// what the ranks above must hold by then.
  bool has_room_before_return(std::int32_t rank) {
    const Token token = token_of(0, Step::kForward);
    return has_left(rank, 0, Step::kForward) &&
           at(rank).free + problem_.duration_of(rank, token) <=
               arrival(rank, token_of(1, Step::kForward)) &&
           fits(rank, at(rank).held + problem_.memory_of(rank, token) * (2 + 2 * rank));
  }

  bool is_behind(std::int32_t rank) const {
    const auto forwards = [&](std::int32_t of, std::int32_t chunk) {
      return count(of, chunk, Step::kForward);
    };
    return forwards(rank, 0) + forwards(rank, 1) < forwards(rank - 1, 0) + forwards(rank - 1, 1) ||
           (forwards(rank, 1) <= forwards(rank - 1, 1) &&
            forwards(rank - 1, 1) < problem_.microbatches);
  }

  /// Chunk 1's I, until chunk 0's can follow it.
  std::int32_t gradient_chunk(std::int32_t rank) const {
    if (count(rank, 0, Step::kInputGrad) >= count(rank, 1, Step::kInputGrad)) return 1;
    const bool can_follow = arrival(rank, token_of(0, Step::kInputGrad)) != kNotYet;
    return can_follow || !has_left(rank, 1, Step::kInputGrad) ? 0 : 1;
  }

  bool run_gradient(std::int32_t rank, std::int32_t chunk) {
    const Token token = token_of(chunk, Step::kInputGrad);
    fill_wait(rank, token, chunk == 0 || rule_.fill_before_gradient);
    return put(rank, token);
  }

  /// Runs one I per rank: those of chunk 0 from the last rank on, then those of chunk 1 from the
  /// first.
  bool run_gradients() {
    std::vector<std::int32_t> chunk;
    for (std::int32_t rank = 0; rank < problem_.ranks; ++rank) {
      if (!make_room(rank, token_of(0, Step::kInputGrad))) return false;
      chunk.push_back(gradient_chunk(rank));
    }
    for (std::int32_t rank = problem_.ranks - 1; rank >= 0; --rank)
      if (chunk[static_cast<std::size_t>(rank)] == 0 && !run_gradient(rank, 0)) return false;
    for (std::int32_t rank = 0; rank < problem_.ranks; ++rank)
      if (chunk[static_cast<std::size_t>(rank)] == 1 && !run_gradient(rank, 1)) return false;
    return true;
  }

  /// Chunk 1's F if its input has been produced, else chunk 0's; empty: neither.
  std::optional<Token> next_forward(std::int32_t rank) const {
    const Token away = token_of(0, Step::kForward);
    const Token back = token_of(1, Step::kForward);
    if (at(rank).count[back] < at(rank).count[away] && arrival(rank, back) != kNotYet) return back;
    if (!has_left(rank, 0, Step::kForward) || arrival(rank, away) == kNotYet) return std::nullopt;
    return away;
  }

  bool run_forwards() {
    for (std::int32_t rank = 0; rank < problem_.ranks; ++rank) {
      if (!has_left(rank, 1, Step::kForward)) continue;
      const std::optional<Token> token = next_forward(rank);
      if (!token) continue;
      if (!make_room(rank, *token)) return false;
      fill_wait(rank, *token, rule_.fill_before_forward);
      if (!put(rank, *token)) return false;
    }
    return true;
  }

  const SearchProblem& problem_;
  const VGreedyRule& rule_;
  std::vector<Rank> ranks_;
  std::vector<Nanos> end_;  ///< [(stage * kSteps + step) * microbatches + n]
  TokenOrder order_;
  Nanos most_idle_ = 0;
  std::int64_t most_fitted_ = 0;
};

}  // namespace

GreedyOrder v_greedy(const SearchProblem& problem, const VGreedyRule& rule) {
  VGreedy first(problem, rule, {});
  GreedyOrder best = first.run();
  Nanos most_idle = first.most_idle();
  for (std::vector<Nanos> idle = first.idle(); best.order;) {
    VGreedy again(problem, rule, idle);
    GreedyOrder order = again.run();
    best.most_fitted = std::max(best.most_fitted, order.most_fitted);
    if (!order.order || again.most_idle() >= most_idle) break;
    most_idle = again.most_idle();
    idle = again.idle();
    best.order = std::move(order.order);
  }
  return best;
}

}  // namespace bubblescope

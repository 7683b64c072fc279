// Runs rounds of one forward and one input gradient.
#include "schedules/search/arrival_greedy.h"

#include <algorithm>
#include <utility>

namespace bubblescope {

namespace {

constexpr Token kForward = static_cast<Token>(Step::kForward);
constexpr Token kGradient = static_cast<Token>(Step::kInputGrad);
constexpr Token kWeight = static_cast<Token>(Step::kWeightGrad);

class ArrivalGreedy {
 public:
  ArrivalGreedy(const SearchProblem& problem, const GreedyRule& rule, Nanos too_long)
      : problem_(problem), rule_(rule), ranks_(static_cast<std::size_t>(problem.ranks)) {
    order_.resize(static_cast<std::size_t>(problem.ops()));
    for (std::int32_t rank = 0; rank < problem.ranks; ++rank)
      ranks_[static_cast<std::size_t>(rank)].too_idle = too_long - work_of(problem, rank);
    for (auto& ends : end_) ends.resize(ranks_.size() * microbatches());
  }

  GreedyOrder run() {
    GreedyOrder found;
    if (run_all()) found.order = std::move(order_);
    found.most_fitted = most_fitted_;
    return found;
  }

 private:
  struct Rank {
    std::array<std::int32_t, kSteps> count{};
    Nanos free = 0;
    Nanos idle = 0;      ///< since the first F's end
    Nanos too_idle = 0;  ///< the idle time at which the order is too long
    std::int64_t held = 0;
    std::size_t written = 0;
  };

  /// False if the order breaks a cap or is too long.
  bool run_all() {
    for (std::int32_t rank = 0; rank < problem_.ranks; ++rank) {
      if (!make_room(rank, kForward)) return false;
      put(rank, kForward);
    }
    warm_up();
    for (std::int32_t round = 0; round < problem_.microbatches; ++round) {
      if (round > 0 && !run_forwards()) return false;
      if (!run_gradients() || is_too_long_) return false;
    }
    for (std::int32_t rank = 0; rank < problem_.ranks; ++rank)
      while (has_weight(rank)) put(rank, kWeight);
    return true;
  }

  std::size_t microbatches() const { return static_cast<std::size_t>(problem_.microbatches); }
  Nanos duration(std::int32_t rank, Token token) const { return problem_.duration[rank][token]; }
  std::int64_t memory(std::int32_t rank, Token token) const { return problem_.memory[rank][token]; }
  Nanos end(std::int32_t rank, Token token, std::int32_t microbatch) const {
    return end_[token][static_cast<std::size_t>(rank) * microbatches() +
                       static_cast<std::size_t>(microbatch)];
  }
  bool has_weight(std::int32_t rank) const {
    return ranks_[rank].count[kWeight] < ranks_[rank].count[kGradient];
  }

  /// When the input of the rank's next F or I arrives; 0 if it needs none from another rank.
  Nanos arrival(std::int32_t rank, Token token) const {
    const std::int32_t next = ranks_[rank].count[token];
    if (token == kForward && rank > 0)
      return end(rank - 1, token, next) + problem_.forward_latency[rank];
    if (token == kGradient && rank + 1 < problem_.ranks)
      return end(rank + 1, token, next) + problem_.backward_latency[rank];
    return 0;
  }

  void put(std::int32_t rank, Token token) {
    Rank& state = ranks_[rank];
    const Nanos start = std::max(state.free, arrival(rank, token));
    if (state.count[kForward] > 0) state.idle += start - state.free;
    most_idle_ = std::max(most_idle_, state.idle);
    is_too_long_ |= state.idle >= state.too_idle;
    state.free = start + duration(rank, token);
    state.held += memory(rank, token);
    end_[token][static_cast<std::size_t>(rank) * microbatches() +
                static_cast<std::size_t>(state.count[token]++)] = state.free;
    order_[static_cast<std::size_t>(rank) * problem_.ops_per_rank() + state.written++] = token;
  }

  /// Whether a rank may hold that much memory.
  bool fits(std::int32_t rank, std::int64_t held) {
    if (held > problem_.cap[rank]) return false;
    most_fitted_ = std::max(most_fitted_, held);
    return true;
  }

  /// Runs W's until an op fits; false if there are too few.
  bool make_room(std::int32_t rank, Token token) {
    while (!fits(rank, ranks_[rank].held + memory(rank, token))) {
      if (!has_weight(rank)) return false;
      put(rank, kWeight);
    }
    return true;
  }

  /// Runs W's while the rank would wait. The last one may overrun the wait if the rule says so, or
  /// if waiting would make this the rank with the most idle time.
  void fill_wait(std::int32_t rank, Nanos arrival) {
    const Rank& state = ranks_[rank];
    while (has_weight(rank) && state.free + duration(rank, kWeight) <= arrival) put(rank, kWeight);
    if (!has_weight(rank) || state.free >= arrival) return;
    const bool may_wait = arrival - state.free <= most_idle_ - state.idle;
    if (!may_wait || rule_.weights_first) put(rank, kWeight);
  }

  /// Counts the F's that a rank can run before its first I can start at `gradient`. Returns when
  /// the rank is free.
  Nanos plan_warm_up(std::int32_t rank, Nanos gradient, std::int32_t& forwards) {
    const Rank& state = ranks_[rank];
    Nanos free = state.free;
    std::int64_t held = state.held + memory(rank, kForward);
    const Nanos each = duration(rank, kForward);
    while (1 + forwards < problem_.microbatches && fits(rank, held)) {
      if (rule_.overrun_first_gradient ? free + each > gradient : free >= gradient) break;
      held += memory(rank, kForward);
      free += each;
      ++forwards;
    }
    return free;
  }

  /// Runs the warm-ups, each shorter than that of the previous rank.
  void warm_up() {
    std::vector<std::int32_t> forwards(ranks_.size(), 0);
    Nanos gradient_end = ranks_.back().free + duration(problem_.ranks - 1, kGradient);
    for (std::int32_t rank = problem_.ranks - 2; rank >= 0; --rank) {
      const Nanos gradient = gradient_end + problem_.backward_latency[rank];
      const Nanos free = plan_warm_up(rank, gradient, forwards[static_cast<std::size_t>(rank)]);
      gradient_end = std::max(free, gradient) + duration(rank, kGradient);
    }
    for (std::size_t rank = 1; rank < forwards.size(); ++rank)
      if (1 + forwards[rank] < problem_.microbatches)
        forwards[rank] = std::min(forwards[rank], std::max(0, forwards[rank - 1] - 1));
    for (std::int32_t rank = 0; rank < problem_.ranks; ++rank)
      for (std::int32_t left = forwards[static_cast<std::size_t>(rank)]; left > 0; --left)
        if (rank == 0 || ranks_[rank].count[kForward] < ranks_[rank - 1].count[kForward])
          put(rank, kForward);
  }

  /// True if an F now would delay the next rank's I by more than idling costs.
  bool puts_off_forward(std::int32_t rank) {
    if (!rule_.forwards_wait || rank + 1 == problem_.ranks) return false;
    const Rank& own = ranks_[rank];
    const Rank& next = ranks_[rank + 1];
    if (own.count[kForward] < next.count[kForward] + 2) return false;
    const Nanos gradient = next.free + duration(rank + 1, kForward) +
                           duration(rank + 1, kGradient) + problem_.backward_latency[rank];
    if (own.free >= gradient) return true;
    std::int64_t held = own.held + memory(rank, kForward);
    Nanos end = own.free + duration(rank, kForward);
    for (std::int32_t left = own.count[kGradient] - own.count[kWeight];
         left > 0 && !fits(rank, held); --left) {
      held += memory(rank, kWeight);
      end += duration(rank, kWeight);
    }
    return end > gradient && gradient - own.free <= most_idle_ - own.idle;
  }

  /// Runs at most one F per rank, only on ranks before which none was delayed; false if a cap
  /// breaks.
  bool run_forwards() {
    std::vector<char> runs(ranks_.size());
    for (std::int32_t rank = 0; rank < problem_.ranks; ++rank)
      runs[static_cast<std::size_t>(rank)] =
          ranks_[rank].count[kForward] < problem_.microbatches && !puts_off_forward(rank);
    for (std::size_t rank = runs.size() - 1; rank-- > 0;) runs[rank] &= runs[rank + 1];
    for (std::int32_t rank = 0; rank < problem_.ranks; ++rank) {
      if (!runs[static_cast<std::size_t>(rank)]) continue;
      if (rank > 0 && ranks_[rank].count[kForward] == ranks_[rank - 1].count[kForward])
        return false;
      if (!make_room(rank, kForward)) return false;
      if (rank > 0) fill_wait(rank, arrival(rank, kForward));
      put(rank, kForward);
    }
    return true;
  }

  /// Runs one I per rank, from the last rank on; false if a cap breaks.
  bool run_gradients() {
    for (std::int32_t rank = problem_.ranks - 1; rank >= 0; --rank) {
      const Rank& state = ranks_[rank];
      if (state.count[kGradient] == state.count[kForward]) return false;
      if (!make_room(rank, kGradient)) return false;
      if (rank + 1 < problem_.ranks) fill_wait(rank, arrival(rank, kGradient));
      if (rank == 0 && state.count[kForward] == problem_.microbatches)
        while (has_weight(rank)) put(rank, kWeight);
      put(rank, kGradient);
    }
    return true;
  }

  const SearchProblem& problem_;
  const GreedyRule& rule_;
  std::vector<Rank> ranks_;
  std::array<std::vector<Nanos>, kSteps> end_;  ///< [rank * microbatches + n]
  TokenOrder order_;
  Nanos most_idle_ = 0;  ///< of any rank so far
  bool is_too_long_ = false;
  std::int64_t most_fitted_ = 0;
};

}  // namespace

GreedyOrder greedy_by_arrivals(const SearchProblem& problem, const GreedyRule& rule,
                               Nanos too_long) {
  return ArrivalGreedy(problem, rule, too_long).run();
}

}  // namespace bubblescope

// Builds an order in rounds of one forward and one input gradient per rank.
#include "schedules/search/arrival_greedy.h"

#include <algorithm>
#include <utility>

namespace bubblescope::schedules {

namespace {

constexpr Token kForwardToken = static_cast<Token>(Step::kForward);
constexpr Token kGradient = static_cast<Token>(Step::kInputGrad);
constexpr Token kWeight = static_cast<Token>(Step::kWeightGrad);

class ArrivalGreedy {
 public:
  ArrivalGreedy(const SearchProblem& problem, const GreedyRule& rule, Nanos too_long)
      : problem_(problem), rule_(rule), prefix_(problem) {
    for (std::int32_t rank = 0; rank < problem.ranks; ++rank)
      too_idle_.push_back(too_long - sum_work(problem, rank));
  }

  GreedyOrder run() && {
    const bool complete = run_all();
    return std::move(prefix_).finish(complete);
  }

 private:
  /// Returns false if the order breaks a cap or is too long.
  bool run_all() {
    for (std::int32_t rank = 0; rank < problem_.ranks; ++rank)
      if (!prefix_.free_memory(rank, kForwardToken) || !prefix_.put(rank, kForwardToken))
        return false;
    warm_up();
    for (std::int32_t round = 0; round < problem_.microbatches; ++round) {
      if (round > 0 && !run_forwards()) return false;
      if (!run_gradients() || is_too_long()) return false;
    }
    for (std::int32_t rank = 0; rank < problem_.ranks; ++rank) prefix_.run_all_weights(rank);
    return true;
  }

  Nanos duration(std::int32_t rank, Token token) const { return problem_.duration[rank][token]; }
  std::int64_t memory(std::int32_t rank, Token token) const { return problem_.memory[rank][token]; }
  std::int32_t count(std::int32_t rank, Token token) const { return prefix_.count(rank, token); }
  Nanos free(std::int32_t rank) const { return prefix_.at(rank).free; }

  /// How long a rank may wait without becoming the one with the most idle time.
  Nanos bearable_wait(std::int32_t rank) const {
    return prefix_.max_idle() - prefix_.at(rank).idle;
  }

  bool is_too_long() const {
    for (std::int32_t rank = 0; rank < problem_.ranks; ++rank)
      if (prefix_.at(rank).idle >= too_idle_[static_cast<std::size_t>(rank)]) return true;
    return false;
  }

  /// Runs W's while the rank would wait for its next op. The last W may overrun the wait if the
  /// rule allows that, or if waiting would make this the rank with the most idle time.
  void fill_wait(std::int32_t rank, Token token) {
    const Nanos ready = prefix_.arrival(rank, token).value_or(0);
    if (!prefix_.fill_wait(rank, ready)) return;
    const bool may_wait = ready - free(rank) <= bearable_wait(rank);
    if (!may_wait || rule_.weights_first) prefix_.run_weight(rank);
  }

  /// Counts the F's that a rank can run before `gradient`, when its first I can start. Returns the
  /// time at which the rank is free.
  Nanos count_warm_up(std::int32_t rank, Nanos gradient, std::int32_t& forwards) {
    Nanos free = prefix_.at(rank).free;
    std::int64_t held = prefix_.at(rank).held + memory(rank, kForwardToken);
    const Nanos each = duration(rank, kForwardToken);
    while (1 + forwards < problem_.microbatches && prefix_.fits(rank, held)) {
      if (rule_.overrun_first_gradient ? free + each > gradient : free >= gradient) break;
      held += memory(rank, kForwardToken);
      free += each;
      ++forwards;
    }
    return free;
  }

  /// Runs the warm-up of every rank, each shorter than that of the previous rank.
  void warm_up() {
    const std::int32_t last = problem_.ranks - 1;
    std::vector<std::int32_t> forwards(static_cast<std::size_t>(problem_.ranks), 0);
    Nanos gradient_end = free(last) + duration(last, kGradient);
    for (std::int32_t rank = last - 1; rank >= 0; --rank) {
      const Nanos gradient = gradient_end + problem_.backward_latency[rank];
      const Nanos free = count_warm_up(rank, gradient, forwards[static_cast<std::size_t>(rank)]);
      gradient_end = std::max(free, gradient) + duration(rank, kGradient);
    }
    for (std::size_t rank = 1; rank < forwards.size(); ++rank)
      if (1 + forwards[rank] < problem_.microbatches)
        forwards[rank] = std::min(forwards[rank], std::max(0, forwards[rank - 1] - 1));
    for (std::int32_t rank = 0; rank < problem_.ranks; ++rank)
      for (std::int32_t left = forwards[static_cast<std::size_t>(rank)]; left > 0; --left)
        prefix_.put(rank, kForwardToken);
  }

  /// Whether an F now would delay the next rank's I by more than idling costs.
  bool delays_forward(std::int32_t rank) {
    if (!rule_.delays_forwards || rank + 1 == problem_.ranks) return false;
    if (count(rank, kForwardToken) < count(rank + 1, kForwardToken) + 2) return false;
    const Nanos gradient = free(rank + 1) + duration(rank + 1, kForwardToken) +
                           duration(rank + 1, kGradient) + problem_.backward_latency[rank];
    if (free(rank) >= gradient) return true;
    std::int64_t held = prefix_.at(rank).held + memory(rank, kForwardToken);
    Nanos end = free(rank) + duration(rank, kForwardToken);
    for (std::size_t left = prefix_.pending(rank); left > 0 && !prefix_.fits(rank, held); --left) {
      held += memory(rank, kWeight);
      end += duration(rank, kWeight);
    }
    return end > gradient && gradient - free(rank) <= bearable_wait(rank);
  }

  /// Runs at most one F per rank, and none on ranks before one whose F is delayed. Returns false if
  /// a cap breaks.
  bool run_forwards() {
    std::vector<char> runs(static_cast<std::size_t>(problem_.ranks));
    for (std::int32_t rank = 0; rank < problem_.ranks; ++rank)
      runs[static_cast<std::size_t>(rank)] =
          prefix_.has_left(rank, kForwardToken) && !delays_forward(rank);
    for (std::size_t rank = runs.size() - 1; rank-- > 0;) runs[rank] &= runs[rank + 1];
    for (std::int32_t rank = 0; rank < problem_.ranks; ++rank) {
      if (!runs[static_cast<std::size_t>(rank)]) continue;
      if (!prefix_.arrival(rank, kForwardToken) || !prefix_.free_memory(rank, kForwardToken))
        return false;
      fill_wait(rank, kForwardToken);
      if (!prefix_.put(rank, kForwardToken)) return false;
    }
    return true;
  }

  /// Runs one I per rank, starting at the last rank. Returns false if a cap breaks.
  bool run_gradients() {
    for (std::int32_t rank = problem_.ranks - 1; rank >= 0; --rank) {
      if (count(rank, kGradient) == count(rank, kForwardToken)) return false;
      if (!prefix_.free_memory(rank, kGradient)) return false;
      fill_wait(rank, kGradient);
      if (rank == 0 && !prefix_.has_left(rank, kForwardToken)) prefix_.run_all_weights(rank);
      if (!prefix_.put(rank, kGradient)) return false;
    }
    return true;
  }

  const SearchProblem& problem_;
  const GreedyRule& rule_;
  GreedyPrefix prefix_;
  std::vector<Nanos> too_idle_;  ///< [rank]: idle time from which the order is too long
};

}  // namespace

GreedyOrder greedy_by_arrivals(const SearchProblem& problem, const GreedyRule& rule,
                               Nanos too_long) {
  return ArrivalGreedy(problem, rule, too_long).run();
}

}  // namespace bubblescope::schedules

// Places weight gradients between given forwards and input gradients.
#include "schedules/search/weight_fill.h"

#include <algorithm>

namespace bubblescope::schedules {

namespace {

class WeightFill {
 public:
  WeightFill(const SearchProblem& problem, const Skeleton& skeleton, Nanos idle_budget)
      : problem_(problem), skeleton_(skeleton), idle_budget_(idle_budget) {
    const auto ranks = static_cast<std::size_t>(problem.ranks);
    steps_per_rank_ = static_cast<std::size_t>(problem.chunks) * problem.microbatches * 2;
    order_.resize(static_cast<std::size_t>(problem.ops()));
    ranks_.resize(ranks);
    for (std::size_t rank = 0; rank < ranks; ++rank)
      ranks_[rank].pending.reserve(steps_per_rank_ / 2);
    count_.resize(static_cast<std::size_t>(problem.stages()) * kSteps);
    end_.resize(count_.size() * static_cast<std::size_t>(problem.microbatches));
  }

  std::optional<TokenOrder> run() {
    for (bool moved = true; moved;) {
      moved = false;
      for (std::int32_t rank = 0; rank < problem_.ranks; ++rank) moved |= advance(rank);
      for (std::int32_t rank = problem_.ranks - 1; rank >= 0; --rank) moved |= advance(rank);
    }
    for (std::int32_t rank = 0; rank < problem_.ranks; ++rank) {
      if (ranks_[rank].next < steps_per_rank_) return std::nullopt;
      while (has_weight(rank)) run_weight(rank);
    }
    return std::move(order_);
  }

 private:
  struct Rank {
    std::size_t next = 0;     ///< in the skeleton
    std::size_t written = 0;  ///< in the order
    Nanos free = 0;
    Nanos idle = 0;  ///< since the first op
    std::int64_t held = 0;
    std::size_t first_pending = 0;
    std::vector<Token> pending;  ///< the W whose I has run
  };

  bool has_weight(std::int32_t rank) const {
    return ranks_[rank].first_pending < ranks_[rank].pending.size();
  }

  Nanos next_weight_duration(std::int32_t rank) const {
    return problem_.duration_of(rank, ranks_[rank].pending[ranks_[rank].first_pending]);
  }

  void put(std::int32_t rank, Token token, Nanos start) {
    Rank& state = ranks_[rank];
    if (state.written > 0) state.idle += start - state.free;
    state.free = start + problem_.duration_of(rank, token);
    state.held += problem_.memory_of(rank, token);
    order_[static_cast<std::size_t>(rank) * problem_.ops_per_rank() + state.written++] = token;
  }

  void run_weight(std::int32_t rank) {
    Rank& state = ranks_[rank];
    put(rank, state.pending[state.first_pending++], state.free);
  }

  /// When the input of the next skeleton op arrives; empty while that is unknown.
  std::optional<Nanos> arrival(std::int32_t stage, Step step, std::int32_t microbatch) const {
    const bool forward = step == Step::kForward;
    if (!forward && count_[stage * kSteps] <= microbatch) return std::nullopt;
    if (stage == (forward ? 0 : problem_.stages() - 1)) return 0;
    const std::int32_t input = (forward ? stage - 1 : stage + 1) * kSteps + static_cast<int>(step);
    if (count_[input] <= microbatch) return std::nullopt;
    return end_[static_cast<std::size_t>(input) * problem_.microbatches + microbatch] +
           (forward ? problem_.forward_latency : problem_.backward_latency)[stage];
  }

  /// Runs W's before an op; false if the cap cannot be kept.
  bool run_weights_before(std::int32_t rank, Token token, Nanos ready) {
    Rank& state = ranks_[rank];
    while (state.held + problem_.memory_of(rank, token) > problem_.cap[rank]) {
      if (!has_weight(rank)) return false;
      run_weight(rank);
    }
    while (has_weight(rank) && state.free < ready) {
      const bool delays = state.free + next_weight_duration(rank) > ready;
      if (delays && ready - state.free <= idle_budget_ - state.idle) break;
      run_weight(rank);
    }
    return true;
  }

  bool advance(std::int32_t rank) {
    Rank& state = ranks_[rank];
    const std::size_t before = state.next;
    for (; state.next < steps_per_rank_; ++state.next) {
      const Token token = skeleton_[static_cast<std::size_t>(rank) * steps_per_rank_ + state.next];
      const std::int32_t stage = problem_.stage(rank, token);
      const std::int32_t row = stage * kSteps + token % kSteps;
      const std::optional<Nanos> ready = arrival(stage, step_of(token), count_[row]);
      if (!ready || !run_weights_before(rank, token, *ready)) break;
      put(rank, token, std::max(state.free, *ready));
      end_[static_cast<std::size_t>(row) * problem_.microbatches + count_[row]++] = state.free;
      if (step_of(token) == Step::kInputGrad && !problem_.fused)
        state.pending.push_back(static_cast<Token>(token + 1));
    }
    return state.next > before;
  }

  const SearchProblem& problem_;
  const Skeleton& skeleton_;
  Nanos idle_budget_;
  std::size_t steps_per_rank_ = 0;
  TokenOrder order_;
  std::vector<Rank> ranks_;
  std::vector<std::int32_t> count_;  ///< [stage * kSteps + step]
  std::vector<Nanos> end_;           ///< [(stage * kSteps + step) * microbatches + n]
};

}  // namespace

std::optional<TokenOrder> fill_weights(const SearchProblem& problem, const Skeleton& skeleton,
                                       Nanos idle_budget) {
  return WeightFill(problem, skeleton, idle_budget).run();
}

}  // namespace bubblescope::schedules

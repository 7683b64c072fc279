// The result of a greedy heuristic under memory caps, and the partial order that such a heuristic
// extends op by op.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "schedules/search/search_problem.h"

namespace bubblescope::schedules {

struct GreedyOrder {
  std::optional<TokenOrder> order;  ///< empty if a cap cannot be kept or the order is too long
  /// The largest amount of memory that passed a cap test on any rank. Every cap from this amount up
  /// to the problem's own gives the same order.
  std::int64_t max_fitted = 0;
};

/// A timed prefix of an order with split backwards. Every rank runs its W's in the order of its
/// I's.
class GreedyPrefix {
 public:
  struct Rank {
    Nanos free = 0;  ///< when its last op ended
    Nanos idle = 0;  ///< since its first op's end
    std::int64_t held = 0;
  };

  /// `problem` must outlive the prefix.
  explicit GreedyPrefix(const SearchProblem& problem);

  const Rank& at(std::int32_t rank) const { return ranks_[static_cast<std::size_t>(rank)]; }
  Nanos max_idle() const { return max_idle_; }  ///< of any rank
  std::int32_t count(std::int32_t rank, Token token) const { return count_[row(rank, token)]; }
  bool has_left(std::int32_t rank, Token token) const {
    return count(rank, token) < problem_.microbatches;
  }
  /// The number of W's that could run now.
  std::size_t pending(std::int32_t rank) const {
    const Weights& own = weights_[static_cast<std::size_t>(rank)];
    return own.due.size() - own.run;
  }

  /// The time at which the next op's input from another rank arrives. Empty if it has not been
  /// produced; 0 if the op needs no input from another rank.
  std::optional<Nanos> arrival(std::int32_t rank, Token token) const;

  /// Whether a rank may hold this much memory; records the amount in max_fitted if so.
  bool fits(std::int32_t rank, std::int64_t held);

  /// Runs an op as early as possible. Returns false if no micro-batch is left, its input has not
  /// been produced, or it does not fit into memory.
  bool put(std::int32_t rank, Token token);

  /// Runs W's until an op fits into memory. Returns false if there are too few.
  bool free_memory(std::int32_t rank, Token token);

  /// Runs the W's that end before `ready`. Returns true if the rank is still waiting then and a W
  /// is left.
  bool fill_wait(std::int32_t rank, Nanos ready);

  void run_weight(std::int32_t rank);
  void run_all_weights(std::int32_t rank);

  /// Returns the order; it is empty if `complete` is false.
  GreedyOrder finish(bool complete) &&;

 private:
  struct Weights {
    std::vector<Token> due;  ///< the W of every I that has run
    std::size_t run = 0;
  };

  std::size_t row(std::int32_t rank, Token token) const {
    return static_cast<std::size_t>(problem_.stage(rank, token)) * kSteps + token % kSteps;
  }
  std::size_t made(std::size_t row, std::int32_t microbatch) const {
    return row * static_cast<std::size_t>(problem_.microbatches) +
           static_cast<std::size_t>(microbatch);
  }

  const SearchProblem& problem_;
  std::vector<Rank> ranks_;
  std::vector<Weights> weights_;      ///< [rank]
  std::vector<std::int32_t> count_;   ///< [stage * kSteps + step]
  std::vector<Nanos> end_;            ///< [made()]: of ops that have run
  std::vector<std::size_t> written_;  ///< [rank]
  TokenOrder order_;
  Nanos max_idle_ = 0;
  std::int64_t max_fitted_ = 0;
};

}  // namespace bubblescope::schedules

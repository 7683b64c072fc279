// Times token orders: every op starts as soon as its rank and its inputs allow.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "schedules/search/search_problem.h"

namespace bubblescope::schedules {

/// The quality of an order: the longest span over the ranks (last end minus first start, or minus
/// the step's start if the problem says so), then the sum of all spans, so that plateaus have a
/// slope.
struct Score {
  Nanos span = 0;
  Nanos sum = 0;

  auto operator<=>(const Score&) const = default;
};

/// Reuses its tables from one order to the next; timing an order takes O(ops).
class AsapClock {
 public:
  explicit AsapClock(const SearchProblem& problem);

  /// Empty if the order blocks: an op comes before one that it needs.
  std::optional<Score> time(const TokenOrder& order);

  /// The rank with the longest span in the order timed last.
  std::int32_t longest_rank() const { return longest_rank_; }

  /// In the order timed last.
  Nanos start(std::int32_t rank, std::int32_t position) const {
    return start_[index(rank, position)];
  }

  /// For the order timed last: the op whose end the op at `at` (rank * ops_per_rank + position)
  /// waited for; empty at time 0.
  std::optional<std::size_t> cause(const TokenOrder& order, std::size_t at) const;

 private:
  std::size_t index(std::int32_t rank, std::int32_t position) const {
    return static_cast<std::size_t>(rank) * ops_per_rank_ + static_cast<std::size_t>(position);
  }
  /// When an op's inputs arrive; empty if they have not been produced yet.
  std::optional<Nanos> arrival(std::int32_t stage, int step, std::int32_t microbatch) const;
  /// Runs a rank as far as its inputs allow; false if that is not even one op.
  bool advance(const TokenOrder& order, std::int32_t rank);
  Score score();

  const SearchProblem& problem_;
  std::size_t ops_per_rank_;
  std::int32_t longest_rank_ = 0;
  std::vector<std::int32_t> position_;    ///< [rank]
  std::vector<Nanos> free_;               ///< [rank]
  std::vector<std::int32_t> count_;       ///< [stage * kSteps + step]
  std::vector<Nanos> end_;                ///< [(stage * kSteps + step) * microbatches + n]
  std::vector<std::uint32_t> place_;      ///< same index: position in the order
  std::vector<Nanos> start_;              ///< [rank * ops_per_rank + position]
  std::vector<std::int32_t> microbatch_;  ///< same index
};

}  // namespace bubblescope::schedules

// Smaller caps: what fits them is a candidate under a larger one, so that more memory never makes a
// schedule longer.
#pragma once

#include <optional>

#include "schedules/search/search_problem.h"

namespace bubblescope {

/// The levels of memory under which a problem is searched, from its own caps down to the least with
/// which there is any order. A level is one number that no rank's cap may exceed, unless one
/// micro-batch needs more. Levels are multiples of a fraction of one forward's memory, up to what
/// 3p micro-batches need, and no limit at all: problems that differ in one cap for all ranks share
/// their levels.
class CapLadder {
 public:
  explicit CapLadder(const SearchProblem& problem);

  /// The problem at the next level; empty below the last one. The first may have no caps: what is
  /// found for it counts only if it fits the problem's own.
  std::optional<SearchProblem> next();

  /// The same for all caps: how much effort there is for each level may depend on it.
  std::int64_t levels_per_forward() const;

  /// Whether orders can hold something between two levels.
  bool skips_levels() const { return skips_levels_; }

 private:
  SearchProblem at_level(std::int64_t level) const;

  const SearchProblem& problem_;
  std::int64_t step_ = 1;      ///< between levels
  std::int64_t level_ = 0;     ///< the next one
  bool without_caps_ = false;  ///< whether the level without caps is still to come
  bool skips_levels_ = false;
  bool is_done_ = false;
};

/// The problem when no rank may hold more than `cap`.
SearchProblem capped_problem(const SearchProblem& problem, std::int64_t cap);

/// False if no order within the caps is shorter than `value`: by the DeadlineTest.
bool may_be_shorter(const SearchProblem& problem, Nanos value);

}  // namespace bubblescope

// Smaller caps: orders that fit a smaller cap are candidates under a larger one, so that more
// memory never makes a schedule longer.
#pragma once

#include <optional>

#include "schedules/search/search_problem.h"

namespace bubblescope::schedules {

/// The memory levels at which a problem is searched, from its own caps down to the smallest with
/// any order. A level is what no rank may hold with its fixed memory, unless one micro-batch needs
/// more. Levels are multiples of a fraction of what a stage holds for one micro-batch, up to the
/// needs of 3p micro-batches, plus one without a limit: problems that differ in one cap for all
/// ranks share their levels. `max_levels` limits the levels per micro-batch of a stage.
class CapLadder {
 public:
  static constexpr std::int64_t kMaxLevels = 4;

  explicit CapLadder(const SearchProblem& problem, std::int64_t max_levels = kMaxLevels);

  /// The problem at the next level; empty after the last one. The first may have no caps: its
  /// orders count only if they fit the problem's own.
  std::optional<SearchProblem> next();

  std::int64_t step() const { return step_; }
  std::int64_t max_level() const { return max_level_; }

  /// Independent of the caps, so that the effort per level may depend on it.
  std::int64_t levels_per_microbatch() const;

  /// Whether orders can hold an amount between two levels.
  bool skips_levels() const { return skips_levels_; }

 private:
  SearchProblem cap_at_level(std::int64_t level) const;

  const SearchProblem& problem_;
  std::int64_t step_ = 1;       ///< between levels
  std::int64_t max_level_ = 0;  ///< the highest besides the one without a limit
  std::int64_t level_ = 0;      ///< the next one
  bool without_caps_ = false;   ///< whether the level without caps comes next
  bool skips_levels_ = false;
  bool is_done_ = false;
};

/// Returns the problem with no rank allowed to hold more than `cap`.
SearchProblem cap_problem(const SearchProblem& problem, std::int64_t cap);

/// False if the DeadlineTest shows that no order within the caps is shorter than `value`.
bool may_be_shorter(const SearchProblem& problem, Nanos value);

}  // namespace bubblescope::schedules

// Computes the levels of a problem's caps.
#include "schedules/search/cap_ladder.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "schedules/search/deadline_test.h"

namespace bubblescope::schedules {

namespace {

// A level of a V is expensive and its bound is loose, so long steps get fewer levels.
constexpr std::int64_t kOpsOfAllLevels = 6'000'000;
constexpr std::int64_t kMinLevels = 12;
constexpr std::int64_t kNoCap = std::numeric_limits<std::int64_t>::max();

/// The smallest amount of memory that a stage holds for one micro-batch, whichever op adds it; 0 if
/// caps have no effect.
std::int64_t microbatch_memory(const SearchProblem& problem) {
  std::int64_t smallest = kNoCap;
  for (const auto& memory : problem.memory) {
    const std::int64_t after_gradient = memory[0] + memory[1];
    const std::int64_t after_weights = after_gradient + (problem.fused ? 0 : memory[2]);
    const std::int64_t held = std::max({memory[0], after_gradient, after_weights});
    if (held > 0) smallest = std::min(smallest, held);
  }
  return smallest == kNoCap ? 0 : smallest;
}

/// The greatest common divisor of all changes of memory.
std::int64_t common_memory(const SearchProblem& problem) {
  std::int64_t common = 0;
  for (const auto& memory : problem.memory)
    for (const std::int64_t delta : memory) common = std::gcd(common, delta);
  return common;
}

}  // namespace

CapLadder::CapLadder(const SearchProblem& problem, std::int64_t max_levels) : problem_(problem) {
  const std::int64_t held = microbatch_memory(problem);
  std::int64_t largest = 0;
  std::int64_t fixed = 0;
  for (std::int32_t rank = 0; rank < problem.ranks; ++rank) {
    largest = std::max(largest, problem.limit(rank));
    fixed = std::max(fixed, problem.fixed_memory[rank]);
  }
  if (held == 0) {
    level_ = kNoCap;
    return;
  }
  const std::int64_t common = common_memory(problem);
  skips_levels_ = common * max_levels < held;
  step_ = skips_levels_ ? std::max<std::int64_t>(held / max_levels, 1) : common;
  const std::int64_t activations = 3 * std::int64_t{problem.ranks} * problem.chunks * held;
  const std::int64_t affordable =
      std::max<std::int64_t>(kMinLevels, kOpsOfAllLevels / problem.ops());
  if (problem.chunks > 1) step_ *= (activations / step_ - 1) / affordable + 1;
  max_level_ = fixed + activations;
  without_caps_ = largest >= max_level_;
  level_ = std::min(largest, max_level_) / step_ * step_;
}

std::int64_t CapLadder::levels_per_microbatch() const {
  return std::max<std::int64_t>(microbatch_memory(problem_) / step_, 1);
}

std::optional<SearchProblem> CapLadder::next() {
  if (without_caps_) {
    without_caps_ = false;
    SearchProblem problem = problem_;
    problem.cap.assign(problem.cap.size(), kNoCap);
    return problem;
  }
  if (is_done_) return std::nullopt;
  SearchProblem problem = cap_at_level(level_);
  is_done_ = level_ == kNoCap || cap_at_level(0).cap == problem.cap;
  level_ -= step_;
  return problem;
}

SearchProblem CapLadder::cap_at_level(std::int64_t level) const {
  SearchProblem problem = problem_;
  if (level == kNoCap) return problem;
  for (std::int32_t rank = 0; rank < problem.ranks; ++rank) {
    const std::int64_t own = std::min(problem.limit(rank) / step_ * step_, level);
    problem.cap[rank] = std::max(min_cap(problem, rank), own - problem.fixed_memory[rank]);
  }
  return problem;
}

SearchProblem cap_problem(const SearchProblem& problem, std::int64_t cap) {
  SearchProblem capped = problem;
  for (std::int64_t& own : capped.cap) own = std::min(own, cap);
  return capped;
}

bool may_be_shorter(const SearchProblem& problem, Nanos value) {
  if (value <= 0) return false;
  DeadlineTest test(problem);
  test.set_value(value - 1);
  return test.passes(Progress(problem));
}

}  // namespace bubblescope::schedules

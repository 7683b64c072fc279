// Combines heuristics, branch and bound and local search on one problem, and mixes full and split
// backwards.
#include "schedules/search/level_search.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "schedules/search/best_order.h"
#include "schedules/search/deadline_test.h"
#include "schedules/search/exact_search.h"
#include "schedules/search/known_orders.h"

namespace bubblescope::schedules {

namespace {

constexpr std::int64_t kFirstClimb = 2'000'000;
constexpr std::int64_t kRoundOfClimbing = 6'000'000;
constexpr std::int64_t kMaxExactOps = 1'000;  ///< larger steps are never searched exactly

/// The greatest common divisor of all times of a step.
Nanos granularity(const SearchProblem& problem) {
  Nanos common = 0;
  for (const auto& durations : problem.duration)
    for (const Nanos duration : durations) common = std::gcd(common, duration);
  for (const Nanos latency : problem.forward_latency) common = std::gcd(common, latency);
  for (const Nanos latency : problem.backward_latency) common = std::gcd(common, latency);
  return std::max<Nanos>(common, 1);
}

TokenOrder in_one_row(const MixedOrder& order) {
  TokenOrder row;
  for (const std::vector<Token>& tokens : order)
    row.insert(row.end(), tokens.begin(), tokens.end());
  return row;
}

}  // namespace

OrderRefinement::OrderRefinement(SearchProblem problem, const ScheduleRequest& request,
                                 const SearchGoal& goal)
    : problem_(std::move(problem)), goal_(goal), granularity_(granularity(problem_)) {
  SearchPlan plan;
  plan.effort = {kFirstClimb, goal.seed, goal.stop};
  plan.known = collect_known_orders(problem_, request);
  best_ = search_orders(problem_, plan).best();
  bound_ = value_lower_bound(problem_, best_.score.span);
  bound_ = (bound_ + granularity_ - 1) / granularity_ * granularity_;
}

void OrderRefinement::refine(std::int64_t effort) {
  std::int64_t left = effort;
  if (can_be_exact(problem_) && problem_.ops() <= kMaxExactOps) left -= search_exactly(effort / 2);
  for (std::uint64_t round = 1; left > 0 && !is_settled() && !stopped(goal_.stop); ++round) {
    climb(goal_.seed + round);
    left -= kRoundOfClimbing;
  }
}

/// Returns the effort spent.
std::int64_t OrderRefinement::search_exactly(std::int64_t effort) {
  std::int64_t left = effort;
  while (left > 0 && !is_settled() && !stopped(goal_.stop)) {
    const ExactAnswer answer =
        find_order_within(problem_, value() - granularity_, left, goal_.stop);
    left -= answer.ops;
    if (answer.order)
      take(in_one_row(*answer.order));
    else if (answer.complete)
      bound_ = value();
  }
  return effort - left;
}

void OrderRefinement::climb(std::uint64_t seed) {
  AsapClock clock(problem_);
  TimedOrder better = improve(problem_, clock, best_,
                              {bound_, 1 + kRoundOfClimbing / problem_.ops(), seed, goal_.stop});
  if (better.score < best_.score) best_ = std::move(better);
}

void OrderRefinement::take(const TokenOrder& order) {
  AsapClock clock(problem_);
  if (const std::optional<Score> score = clock.time(order)) best_ = {order, *score};
}

SearchProblem LevelProblem::relaxed() const {
  return split && full ? MixedProblem{*split, *full}.relaxed() : any();
}

bool LevelProblem::has_order() const {
  return (split && min_caps_hold(*split)) || (full && min_caps_hold(*full));
}

LevelProblem LevelProblem::with_caps(const std::vector<std::int64_t>& caps) const {
  LevelProblem problem = *this;
  if (problem.split) problem.split->cap = caps;
  if (problem.full) problem.full->cap = caps;
  return problem;
}

LevelSearch::LevelSearch(const LevelProblem& problem, const ScheduleRequest& request,
                         const SearchGoal& goal)
    : goal_(goal) {
  for (const auto& kind : {problem.split, problem.full})
    if (kind && min_caps_hold(*kind)) kinds_.emplace_back(*kind, request, goal);
  if (!problem.split || !problem.full) return;
  mixed_ = MixedProblem{*problem.split, *problem.full};
  relaxed_.emplace(mixed_->relaxed(), request, goal);
  mix(kFirstClimb);
}

Nanos LevelSearch::value() const {
  Nanos shortest = mixed_order_.empty() ? kinds_.front().value() : mixed_value_;
  for (const OrderRefinement& kind : kinds_) shortest = std::min(shortest, kind.value());
  return shortest;
}

Nanos LevelSearch::bound() const {
  if (!relaxed_) return kinds_.front().bound();
  return std::min(std::max(relaxed_->bound(), mixed_bound_), value());
}

Schedule LevelSearch::schedule() const {
  for (const OrderRefinement& kind : kinds_)
    if (kind.value() == value()) return to_schedule(kind.problem(), kind.order());
  return to_schedule(*mixed_, mixed_order_);
}

void LevelSearch::refine(std::int64_t effort) {
  std::int64_t left = effort;
  if (mixed_) left -= try_all_mixes(effort / 2);
  const std::int64_t share = left / static_cast<std::int64_t>(kinds_.size() + (relaxed_ ? 2 : 0));
  if (relaxed_ && bound() < value()) relaxed_->refine(share);
  for (OrderRefinement& kind : kinds_)
    if (bound() < value()) kind.refine(share);
  if (mixed_ && bound() < value()) mix(share);
}

/// Searches all mixes exactly, as far as `effort` allows. Returns the effort spent.
std::int64_t LevelSearch::try_all_mixes(std::int64_t effort) {
  if (!can_be_exact(mixed_->split) || mixed_->split.ops() > kMaxExactOps) return 0;
  const Nanos step = std::gcd(granularity(mixed_->split), granularity(mixed_->full));
  std::int64_t left = effort;
  while (left > 0 && bound() < value() && !stopped(goal_.stop)) {
    ExactAnswer answer = find_mixed_order_within(*mixed_, value() - step, left, goal_.stop);
    left -= answer.ops;
    if (answer.order)
      take(std::move(*answer.order));
    else if (answer.complete)
      mixed_bound_ = value();
  }
  return effort - left;
}

/// Runs local search from the best order of either kind, from the best order of the relaxed problem
/// with all its backwards split, and from the best mix so far.
void LevelSearch::mix(std::int64_t effort) {
  std::vector<MixedOrder> starts;
  for (const OrderRefinement& kind : kinds_)
    starts.push_back(to_mixed(kind.problem(), kind.order()));
  starts.push_back(to_mixed(relaxed_->problem(), relaxed_->order()));
  if (!mixed_order_.empty()) starts.push_back(mixed_order_);
  for (MixedOrder& start : starts) {
    MixedOrder order =
        improve_mixed(*mixed_, std::move(start),
                      {effort / static_cast<std::int64_t>(starts.size()), goal_.seed, goal_.stop});
    take(std::move(order));
  }
}

void LevelSearch::take(MixedOrder order) {
  const std::optional<Nanos> value = measure_mixed(*mixed_, order);
  if (!value || (!mixed_order_.empty() && *value >= mixed_value_)) return;
  mixed_value_ = *value;
  mixed_order_ = std::move(order);
}

}  // namespace bubblescope::schedules

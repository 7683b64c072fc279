// One search per placement; those that cannot win any more are left.
#include "schedules/search/schedule_search.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

#include "schedules/search/best_order.h"
#include "schedules/search/deadline_test.h"
#include "schedules/search/exact_search.h"
#include "schedules/search/known_orders.h"
#include "schedules/search/steady_state.h"

namespace bubblescope {

namespace {

constexpr std::int64_t kFirstClimb = 2'000'000;
constexpr std::int64_t kRoundOfClimbing = 6'000'000;
constexpr std::int64_t kMostExactOps = 1'000;  ///< larger steps are never searched exactly

/// All times of a step are multiples of this.
Nanos granularity(const SearchProblem& problem) {
  Nanos common = 0;
  for (const auto& durations : problem.duration)
    for (const Nanos duration : durations) common = std::gcd(common, duration);
  for (const Nanos latency : problem.forward_latency) common = std::gcd(common, latency);
  for (const Nanos latency : problem.backward_latency) common = std::gcd(common, latency);
  return std::max<Nanos>(common, 1);
}

/// The search on one placement with one kind of backward.
class PlacementSearch {
 public:
  PlacementSearch(SearchProblem problem, const ScheduleRequest& request, const SearchGoal& goal)
      : problem_(std::move(problem)), goal_(goal), granularity_(granularity(problem_)) {
    SearchPlan plan;
    plan.effort = {kFirstClimb, goal.seed, goal.stop};
    plan.known = known_orders(problem_, request);
    best_ = search_orders(problem_, plan).best();
    bound_ = least_value(problem_, best_.score.span);
    bound_ = (bound_ + granularity_ - 1) / granularity_ * granularity_;
  }

  Nanos value() const { return best_.score.span; }
  Nanos bound() const { return bound_; }
  Schedule schedule() const { return to_schedule(problem_, best_.order); }
  bool is_settled() const { return bound_ >= value(); }

  /// Looks for better orders; half of the effort goes into all orders, where that may end.
  void refine(std::int64_t effort) {
    std::int64_t left = effort;
    if (can_be_exact(problem_) && problem_.ops() <= kMostExactOps) left -= look_at_all(effort / 2);
    for (std::uint64_t round = 1; left > 0 && !is_settled() && !stopped(goal_.stop); ++round) {
      climb(goal_.seed + round);
      left -= kRoundOfClimbing;
    }
  }

 private:
  /// The effort that it took.
  std::int64_t look_at_all(std::int64_t effort) {
    std::int64_t left = effort;
    while (left > 0 && !is_settled() && !stopped(goal_.stop)) {
      const ExactAnswer answer =
          find_order_within(problem_, value() - granularity_, left, goal_.stop);
      left -= answer.ops;
      if (answer.order)
        take(*answer.order);
      else if (answer.complete)
        bound_ = value();
    }
    return effort - left;
  }

  void climb(std::uint64_t seed) {
    AsapClock clock(problem_);
    TimedOrder better = improve(problem_, clock, best_,
                                {bound_, 1 + kRoundOfClimbing / problem_.ops(), seed, goal_.stop});
    if (better.score < best_.score) keep(std::move(better));
  }

  void take(const TokenOrder& order) {
    AsapClock clock(problem_);
    if (const std::optional<Score> score = clock.time(order)) keep({order, *score});
  }

  void keep(TimedOrder better) {
    const bool is_news = better.score.span < value();
    best_ = std::move(better);
    if (is_news && goal_.tell) goal_.tell({value(), bound_});
  }

  SearchProblem problem_;
  const SearchGoal& goal_;
  Nanos granularity_;
  TimedOrder best_;
  Nanos bound_ = 0;
};

bool any_full_backward_is_shorter(const SearchProblem& split, const SearchProblem& fused) {
  for (std::size_t stage = 0; stage < split.duration.size(); ++stage)
    if (fused.duration[stage][1] < split.duration[stage][1] + split.duration[stage][2]) return true;
  return false;
}

bool ranks_are_alike(const ScheduleRequest& request) {
  const std::vector<std::int64_t>& cap = request.memory.cap;
  const bool same_caps =
      std::adjacent_find(cap.begin(), cap.end(), std::not_equal_to<>()) == cap.end();
  return same_caps && (!request.stage_costs || request.stage_costs->message_between.empty());
}

/// False where a cost file says what full backwards take, but not what their halves do.
bool splits_backwards(const SearchProblem& split, const SearchProblem& fused) {
  for (std::size_t stage = 0; stage < split.duration.size(); ++stage) {
    const Nanos halves = split.duration[stage][1] + split.duration[stage][2];
    if (halves == 0 && fused.duration[stage][1] > 0) return false;
  }
  return true;
}

/// A problem for each placement and kind of backward that can be the best one.
std::vector<SearchProblem> problems_of(const ScheduleRequest& request, const SearchGoal& goal,
                                       const Placements& placements) {
  std::vector<SearchProblem> problems;
  const auto add = [&](SearchProblem problem) {
    problem.from_step_start = goal.objective != Objective::kSpan;
    if (refuse_caps(problem, request.memory.unit_parts).empty())
      problems.push_back(std::move(problem));
  };
  for (const std::vector<std::int32_t>& placement : placements.tried) {
    SearchProblem split = search_problem(request, placement);
    SearchProblem fused = search_problem(request, placement, true);
    const bool splits = splits_backwards(split, fused);
    if (!splits || any_full_backward_is_shorter(split, fused)) add(std::move(fused));
    if (splits) add(std::move(split));
  }
  return problems;
}

/// A rank with as little work as any deal of the stages can leave to the busiest one.
Nanos least_work(const SearchProblem& problem) {
  Nanos sum = 0;
  for (const auto& durations : problem.duration)
    sum += durations[0] + durations[1] + (problem.fused ? 0 : durations[2]);
  return (sum * problem.microbatches + problem.ranks - 1) / problem.ranks;
}

FoundSchedule search_step(const ScheduleRequest& request, const SearchGoal& goal,
                          const Placements& placements) {
  std::vector<PlacementSearch> searches;
  Nanos least = 0;
  bool all = placements.all;
  for (SearchProblem& problem : problems_of(request, goal, placements)) {
    if (!searches.empty() && stopped(goal.stop)) {
      all = false;
      break;
    }
    least = searches.empty() ? least_work(problem) : std::min(least, least_work(problem));
    searches.emplace_back(std::move(problem), request, goal);
  }
  const auto by_value = [](const PlacementSearch& a, const PlacementSearch& b) {
    return a.value() < b.value();
  };
  const auto best = [&]() -> PlacementSearch& {
    return *std::min_element(searches.begin(), searches.end(), by_value);
  };
  if (goal.tell) goal.tell({best().value(), best().bound()});
  std::int64_t searches_left = static_cast<std::int64_t>(searches.size());
  std::int64_t effort = goal.effort;
  for (PlacementSearch& search : searches) {
    const std::int64_t share = effort / searches_left--;
    if (search.bound() >= best().value()) continue;
    search.refine(share);
    effort -= share;
  }
  Nanos bound = best().value();
  for (const PlacementSearch& search : searches) bound = std::min(bound, search.bound());
  if (!all) bound = std::min(bound, least);
  return {best().schedule(), best().value(), bound};
}

FoundSchedule search_period(const ScheduleRequest& request, const SearchGoal& goal,
                            const Placements& placements) {
  FoundSchedule found;
  for (const SearchProblem& problem : problems_of(request, goal, placements)) {
    ScheduleRequest brief = request;
    brief.shape.microbatches = brief_step(problem).microbatches;
    const SteadyOrder steady = find_steady_order(problem, known_orders(brief_step(problem), brief),
                                                 {goal.effort / 8, goal.seed, goal.stop});
    const bool is_first = found.value == 0;
    found.bound = is_first ? steady.bound : std::min(found.bound, steady.bound);
    if (!is_first && found.value <= steady.period) continue;
    found.value = steady.period;
    found.schedule = to_schedule(problem, steady.order);
    if (goal.tell) goal.tell({found.value, found.bound});
  }
  return found;
}

}  // namespace

std::vector<std::string> refuse_goal(const ScheduleRequest& request, const SearchGoal& goal) {
  const std::string chunks = refuse_chunks(goal.placement, request.shape.chunks);
  if (!chunks.empty()) return {chunks};
  const Placements chosen = placements(goal.placement, request.shape, ranks_are_alike(request));
  if (!problems_of(request, goal, chosen).empty()) return {};
  return refuse_caps(search_problem(request, chosen.tried.front()), request.memory.unit_parts);
}

FoundSchedule search_schedule(const ScheduleRequest& request, const SearchGoal& goal) {
  const Placements chosen = placements(goal.placement, request.shape, ranks_are_alike(request));
  FoundSchedule found = goal.objective == Objective::kPeriod ? search_period(request, goal, chosen)
                                                             : search_step(request, goal, chosen);
  found.schedule.name = "search";
  found.schedule.shape = request.shape;
  return found;
}

}  // namespace bubblescope

// Runs one search per placement, and drops those that cannot win any more.
#include "schedules/search/schedule_search.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "schedules/search/best_order.h"
#include "schedules/search/cap_ladder.h"
#include "schedules/search/known_orders.h"
#include "schedules/search/level_search.h"
#include "schedules/search/order_pool.h"
#include "schedules/search/steady_state.h"
#include "sim/ir/range.h"

namespace bubblescope::schedules {

namespace {

bool ranks_are_alike(const ScheduleRequest& request) {
  const std::vector<std::int64_t>& cap = request.memory.cap;
  const bool same_caps =
      std::adjacent_find(cap.begin(), cap.end(), std::not_equal_to<>()) == cap.end();
  return same_caps && (!request.stage_costs || request.stage_costs->message_between.empty());
}

/// False if a cost file gives times of full backwards, but not of their halves. Those of flags
/// always have both.
bool splits_backwards(const ScheduleRequest& request, const SearchProblem& split,
                      const SearchProblem& fused) {
  if (!request.stage_costs) return true;
  for (std::size_t stage = 0; stage < split.duration.size(); ++stage) {
    const Nanos halves = split.duration[stage][1] + split.duration[stage][2] - 2 * split.op_gap;
    if (halves == 0 && fused.duration[stage][1] > fused.op_gap) return false;
  }
  return true;
}

/// The request with the costs of its stages and the memory that they need on this placement.
ScheduleRequest place(ScheduleRequest request, const SearchGoal& goal,
                      const std::vector<std::int32_t>& placement) {
  if (goal.find_costs) request.stage_costs = goal.find_costs(placement);
  if (goal.find_memory) request.memory = goal.find_memory(placement);
  return request;
}

/// The search problems of a placement, whether or not the caps allow them.
LevelProblem problem_on(const ScheduleRequest& request, const SearchGoal& goal,
                        const std::vector<std::int32_t>& placement) {
  const ScheduleRequest placed = place(request, goal, placement);
  SearchProblem split = search_problem(placed, placement);
  SearchProblem full = search_problem(placed, placement, true);
  for (SearchProblem* problem : {&split, &full})
    problem->from_step_start = goal.objective != Objective::kSpan;
  LevelProblem problem;
  const bool mixes = can_mix({split, full});
  const bool splits = splits_backwards(placed, split, full);
  if (!splits || mixes) problem.full = full;
  if (splits) problem.split = std::move(split);
  return problem;
}

/// The placements on which the caps allow one micro-batch.
std::vector<LevelProblem> problems_of(const ScheduleRequest& request, const SearchGoal& goal,
                                      const Placements& placements) {
  std::vector<LevelProblem> problems;
  for (const std::vector<std::int32_t>& placement : placements.tried) {
    LevelProblem problem = problem_on(request, goal, placement);
    if (problem.has_order()) problems.push_back(std::move(problem));
  }
  return problems;
}

/// Returns a lower bound on the work of the busiest rank, for any assignment of the stages.
Nanos work_lower_bound(const LevelProblem& level) {
  const SearchProblem problem = level.relaxed();
  Nanos sum = 0;
  for (const auto& durations : problem.duration)
    sum += durations[0] + durations[1] + (problem.fused ? 0 : durations[2]);
  const Nanos all = multiply(sum, problem.microbatches, "the work of all ranks");
  return (all + problem.ranks - 1) / problem.ranks;
}

/// Finds the best schedule over all placements and memory levels.
class StepSearch {
 public:
  StepSearch(const ScheduleRequest& request, const SearchGoal& goal)
      : request_(request), goal_(goal) {}

  FoundSchedule run(const Placements& placements) {
    const std::vector<LevelProblem> problems = problems_of(request_, goal_, placements);
    std::vector<LevelSearch> searches;
    bool all = placements.all;
    for (const LevelProblem& problem : problems) {
      if (!searches.empty() && stopped(goal_.stop)) {
        all = false;
        break;
      }
      searches.emplace_back(problem, request_, goal_);
      take(searches.back());
    }
    // The same effort for every level, so that what is found for a smaller cap is found for a
    // larger one too.
    const std::int64_t effort =
        goal_.effort / (kLevelsInTime * static_cast<std::int64_t>(problems.size()));
    for (LevelSearch& search : searches) refine(search, effort);
    for (std::size_t at = 0; at < searches.size(); ++at) {
      search_lower_levels(problems[at], effort);
      search_lower_ranks(problems[at], effort);
      if (searches[at].bound() < found_.value) take_searched(problems[at]);
    }
    found_.bound = found_.value;
    for (const LevelSearch& search : searches)
      found_.bound = std::min(found_.bound, search.bound());
    // If a rank's stages differ, caps in units that stand for bytes are stricter than the bytes.
    const bool exact = !goal_.find_memory || request_.memory.cap.empty();
    if (!all || !exact)
      for (const LevelProblem& problem : problems)
        found_.bound = std::min(found_.bound, work_lower_bound(problem));
    return std::move(found_);
  }

 private:
  static constexpr std::int64_t kLevelsInTime = 2;

  void take(const LevelSearch& search) {
    if (found_.value > 0 && search.value() >= found_.value) return;
    found_.value = search.value();
    found_.schedule = search.schedule();
    if (goal_.on_progress) goal_.on_progress({search.value(), search.bound()});
  }

  void refine(LevelSearch& search, std::int64_t effort) {
    if (search.bound() >= found_.value) return;
    search.refine(effort);
    take(search);
  }

  void search_lower_levels(const LevelProblem& problem, std::int64_t effort) {
    CapLadder ladder(problem.any());
    while (const std::optional<SearchProblem> level = ladder.next()) {
      // Skips the problem's own caps, and none.
      if (level->cap >= problem.any().cap) continue;
      if (stopped(goal_.stop)) return;
      if (!search_level(problem.with_caps(level->cap), effort)) return;
    }
  }

  /// Returns false if the level, and with it every lower one, is of no use.
  bool search_level(const LevelProblem& lower, std::int64_t effort) {
    if (!lower.has_order() || !may_be_shorter(lower.relaxed(), found_.value)) return false;
    LevelSearch search(lower, request_, goal_);
    take(search);
    refine(search, effort);
    return true;
  }

  /// If limits differ: lowers the cap of one rank at a time, so that more memory for a single rank
  /// seldom gives a longer order.
  void search_lower_ranks(const LevelProblem& problem, std::int64_t effort) {
    if (limits_are_alike(problem.any())) return;
    const std::vector<std::int64_t> caps = problem.any().cap;
    const std::int64_t step = CapLadder(problem.any()).step();
    const std::int64_t max_level = CapLadder(problem.any()).max_level();
    for (std::int32_t rank = 0; rank < problem.any().ranks; ++rank) {
      const std::int64_t own = caps[static_cast<std::size_t>(rank)];
      const std::int64_t min_level = min_cap(problem.any(), rank);
      for (std::int64_t cap = (std::min(own, max_level) - 1) / step * step; cap >= min_level;
           cap -= step) {
        if (stopped(goal_.stop)) return;
        std::vector<std::int64_t> lower = caps;
        lower[static_cast<std::size_t>(rank)] = cap;
        if (!search_level(problem.with_caps(lower), effort)) break;
      }
    }
  }

  void offer_searched(OrderPool& pool, const SearchProblem& problem) {
    if (problem.chunks > 2) return;
    const std::vector<std::int32_t>& placement = problem.rank_of_stage;
    if (placement != zigzag_placement(problem.ranks, problem.chunks)) return;
    pool.offer(find_best_order(problem));
    const ScheduleRequest placed = place(request_, goal_, placement);
    for (const TokenOrder& order :
         collect_searched_orders(problem, placed, SearchedUnder::kAnyCaps))
      pool.offer(order);
  }

  /// Takes the best order of the registered schedules that search. It is taken last, and not
  /// improved, so that a smaller cap, where it is not a candidate, cannot lead to a shorter order.
  void take_searched(const LevelProblem& problem) {
    for (const std::optional<SearchProblem>& kind : {problem.split, problem.full}) {
      if (!kind || !min_caps_hold(*kind) || stopped(goal_.stop)) continue;
      OrderPool pool(*kind);
      offer_searched(pool, *kind);
      if (pool.empty() || pool.best().score.span >= found_.value) continue;
      found_.value = pool.best().score.span;
      found_.schedule = to_schedule(*kind, pool.best().order);
    }
  }

  const ScheduleRequest& request_;
  const SearchGoal& goal_;
  FoundSchedule found_;
};

FoundSchedule search_step(const ScheduleRequest& request, const SearchGoal& goal,
                          const Placements& placements) {
  return StepSearch(request, goal).run(placements);
}

/// Falls back to repeating the whole step of the makespan search if nothing repeats faster.
FoundSchedule search_period(const ScheduleRequest& request, const SearchGoal& goal,
                            const Placements& placements) {
  FoundSchedule found = search_step(request, goal, placements);
  found.value = (found.value - 1) / request.shape.microbatches + 1;
  found.bound = 0;
  for (const LevelProblem& problem : problems_of(request, goal, placements)) {
    const Nanos bound = period_lower_bound(problem.relaxed());
    found.bound = found.bound == 0 ? bound : std::min(found.bound, bound);
    for (const std::optional<SearchProblem>& kind : {problem.split, problem.full}) {
      if (!kind || !min_caps_hold(*kind)) continue;
      ScheduleRequest brief = request;
      brief.shape.microbatches = make_brief_step(*kind).microbatches;
      const SteadyOrder steady =
          find_steady_order(*kind, collect_known_orders(make_brief_step(*kind), brief),
                            {goal.effort / 8, goal.seed, goal.stop});
      if (found.value <= steady.period) continue;
      found.value = steady.period;
      found.schedule = to_schedule(*kind, steady.order);
      if (goal.on_progress) goal.on_progress({found.value, found.bound});
    }
  }
  return found;
}

/// The same goal for a step in which a gap follows every op: none follows the last one.
SearchGoal without_last_gap(SearchGoal goal, Nanos gap) {
  if (gap > 0 && goal.on_progress)
    goal.on_progress = [gap, show = std::move(goal.on_progress)](const SearchProgress& progress) {
      show({progress.value - gap, progress.bound - gap});
    };
  return goal;
}

}  // namespace

std::vector<std::string> refuse_goal(const ScheduleRequest& request, const SearchGoal& goal) {
  const std::string chunks = refuse_chunks(goal.placement, request.shape.chunks);
  if (!chunks.empty()) return {chunks};
  const Placements chosen = placements(goal.placement, request.shape, ranks_are_alike(request));
  if (!problems_of(request, goal, chosen).empty()) return {};
  const LevelProblem problem = problem_on(request, goal, chosen.tried.front());
  return refuse_caps(problem.any(), place(request, goal, chosen.tried.front()).memory);
}

FoundSchedule search_schedule(const ScheduleRequest& request, const SearchGoal& goal) {
  const Placements chosen = placements(goal.placement, request.shape, ranks_are_alike(request));
  FoundSchedule found;
  if (goal.objective == Objective::kPeriod) {
    found = search_period(request, goal, chosen);
  } else {
    const Nanos last_gap = request.stage_costs ? request.stage_costs->op_gap : 0;
    found = search_step(request, without_last_gap(goal, last_gap), chosen);
    found.value -= last_gap;
    found.bound -= last_gap;
  }
  found.schedule.name = "search";
  found.schedule.shape = request.shape;
  return found;
}

}  // namespace bubblescope::schedules

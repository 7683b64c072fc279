// Compares the step times of each schedule's best configurations while a cost varies.
#include "tools/plan/break_even.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <map>
#include <optional>
#include <utility>

#include "sim/model/schedule_def.h"
#include "tools/plan/plan_timer.h"

namespace bubblescope::tools {

namespace {

constexpr Nanos kGrid = 24;   ///< steps of the grid; the smallest ones are next to the current cost
constexpr Nanos kParts = 16;  ///< of a grid step, where a challenger may be ahead and behind again
constexpr Nanos kMaxScanned = 1024;  ///< nanoseconds that are tried one by one
constexpr Nanos kRounding = 64;      ///< nanoseconds within which rounding alone may decide
/// The fraction of a step within which schedules are tied where shares of costs are rounded.
constexpr double kTie = 1e-6;

const std::vector<CostParameter>& parameters() {
  static const std::vector<CostParameter> all{
      {"p2p", true, [](UniformCost& cost) -> Nanos& { return cost.message; }},
      {"i", false, [](UniformCost& cost) -> Nanos& { return cost.input_grad; }},
      {"w", false, [](UniformCost& cost) -> Nanos& { return cost.weight_grad; }},
  };
  return all;
}

/// A schedule's plans, fastest first under current costs.
struct BreakEvenCandidate {
  std::vector<std::size_t> plans;
};

std::vector<BreakEvenCandidate> find_candidates(const std::vector<Plan>& ranked) {
  std::vector<BreakEvenCandidate> candidates;
  std::map<std::string, std::size_t> index;
  for (std::size_t at = 0; at < ranked.size(); ++at) {
    const std::string& schedule = ranked[at].configuration.schedule;
    const auto [known, is_new] = index.try_emplace(schedule, candidates.size());
    if (is_new) candidates.emplace_back();
    candidates[known->second].plans.push_back(at);
  }
  return candidates;
}

/// A range of numbers of units, both ends included.
struct UnitRange {
  Nanos first = 1;
  Nanos last = 0;

  bool empty() const { return last < first; }
  void cut(const UnitRange& other) {
    first = std::max(first, other.first);
    last = std::min(last, other.last);
  }
};

/// The whole numbers from 1 to `width` near which a + b * t may be negative. It is one wider at its
/// inner end, so that rounding excludes none.
UnitRange find_negative(long double a, long double b, Nanos width) {
  if (b == 0) return a < 0 ? UnitRange{1, width} : UnitRange{};
  const long double root = -a / b;
  UnitRange range{1, width};
  if (b < 0 && root > static_cast<long double>(width)) return {};
  if (b < 0 && root > 1) range.first = static_cast<Nanos>(std::floor(root));
  if (b > 0 && root <= 1) return a + b < 0 ? UnitRange{1, 1} : UnitRange{};
  if (b > 0 && root < static_cast<long double>(width))
    range.last = static_cast<Nanos>(std::ceil(root));
  return range;
}

/// Compares the best schedule with the others while one parameter goes from its current value to
/// `limit`.
///
/// A plan's step is the longest path through a fixed graph, so its time is a convex function of a
/// cost: below its chords and above its tangents. Between two values a challenger can be ahead only
/// where its tangents at both are below the best schedule's chord. Where both are straight lines,
/// that interval begins at the break-even point; elsewhere it is divided. Costs are rounded where
/// chunks, slices or ranks divide them, so values are counted in units that all of them divide, and
/// the last unit is searched nanosecond by nanosecond. Schedules that only rounding tells apart are
/// tied: a challenger counts where it gains more than kTie of the step, from where it began to
/// gain.
class BreakEvenSearch {
 public:
  BreakEvenSearch(PlanTimer& timer, const std::vector<Plan>& ranked,
                  const std::vector<BreakEvenCandidate>& candidates, Nanos limit)
      : timer_(timer), ranked_(ranked), candidates_(candidates), limit_(limit) {
    now_ = timer.now();
    unit_ = timer.unit().value_or(1) * (limit < now_ ? -1 : 1);
    tie_ = timer.rounds() ? kTie : 0;
  }

  /// Returns the challenger that is ahead first, in the configuration in which it is.
  std::optional<traces::BreakEven> nearest(const std::string& parameter) {
    std::optional<traces::BreakEven> found;
    Nanos end = limit_;
    for (std::size_t runner_up = 1; runner_up < candidates_.size() && end != now_; ++runner_up) {
      auto value = find_on_grid(runner_up, end);
      if (timer_.is_convex())
        value = find_first(runner_up, value.value_or(end));
      else if (value && tie_ > 0)
        value = find_start(runner_up, {}, *value);
      if (!value || (found && *value == found->at)) continue;
      found = {parameter, now_, *value, ranked_[fastest(runner_up, *value).first].configuration};
      end = *value;
    }
    return found;
  }

 private:
  static constexpr double kForever = std::numeric_limits<double>::infinity();

  Nanos value_of(Nanos units) const { return now_ + units * unit_; }

  /// Returns the lower bound of a plan between the flag's current value and the limit.
  double bound(std::size_t plan) { return timer_.bound(plan, std::min(now_, limit_)); }

  /// Returns the fastest plan of a schedule among those faster than `below`, and its time.
  std::pair<std::size_t, double> fastest(std::size_t candidate, Nanos value,
                                         double below = kForever) {
    std::pair<std::size_t, double> best{candidates_[candidate].plans.front(), below};
    for (const std::size_t plan : candidates_[candidate].plans) {
      if (bound(plan) >= best.second) continue;
      const double time = timer_.time(plan, value);
      if (time < best.second) best = {plan, time};
    }
    return best;
  }

  /// Whether the runner-up is faster than the best schedule by more than a fraction.
  bool is_behind_by(double fraction, std::size_t runner_up, Nanos value) {
    const double limit = fastest(0, value).second * (1 - fraction);
    return fastest(runner_up, value, limit).second < limit;
  }

  /// Whether the best schedule is behind by more than a tie.
  bool is_behind(std::size_t runner_up, Nanos value) {
    return is_behind_by(tie_, runner_up, value);
  }

  /// Bisects for the value nearest to `ahead` at which the best schedule is behind, as at `behind`.
  Nanos turn_between(std::size_t runner_up, Nanos ahead, Nanos behind) {
    while (behind - ahead > 1 || ahead - behind > 1) {
      const Nanos middle = ahead + (behind - ahead) / 2;
      (is_behind(runner_up, middle) ? behind : ahead) = middle;
    }
    return behind;
  }

  /// Where a plan's tangents at both ends are below the chord of a plan of the best schedule.
  UnitRange may_be_ahead(std::size_t plan, std::size_t best, Nanos from, Nanos to) {
    const auto step_of = [&](std::size_t which, Nanos units) {
      return static_cast<long double>(timer_.step(which, value_of(units)));
    };
    const auto width = static_cast<long double>(to - from);
    // Times per sample times both numbers of samples.
    const auto of_plan = static_cast<long double>(ranked_[best].configuration.samples());
    const auto of_best = static_cast<long double>(ranked_[plan].configuration.samples());
    const long double scale = of_best * (1 - tie_);
    const long double chord = scale * step_of(best, from);
    const long double slope = scale * ((step_of(best, to) - step_of(best, from)) / width);
    const long double low = step_of(plan, from);
    const long double low_slope = step_of(plan, from + 1) - low;
    UnitRange range = find_negative(of_plan * low - chord, of_plan * low_slope - slope, to - from);
    if (range.empty()) return range;
    const long double high = step_of(plan, to);
    const long double high_slope = high - step_of(plan, to - 1);
    range.cut(find_negative(of_plan * (high - width * high_slope) - chord,
                            of_plan * high_slope - slope, to - from));
    return range;
  }

  /// The numbers of units beyond `from` and up to `to` at which the challenger may be ahead.
  UnitRange may_be_behind(std::size_t runner_up, Nanos from, Nanos to) {
    const auto [near, near_time] = fastest(0, value_of(from));
    const auto [far, far_time] = fastest(0, value_of(to));
    const double max_time = std::max(timer_.time(far, value_of(from)), far_time);
    UnitRange all{to + 1, from};
    for (const std::size_t plan : candidates_[runner_up].plans) {
      if (bound(plan) >= max_time) continue;
      UnitRange range = may_be_ahead(plan, far, from, to);
      if (!range.empty() && near != far) range.cut(may_be_ahead(plan, near, from, to));
      if (range.empty()) continue;
      all.first = std::min(all.first, from + range.first);
      all.last = std::max(all.last, from + range.last);
    }
    return all;
  }

  /// The first number of units beyond `from`, where the best schedule is not behind, and up to `to`
  /// at which it is.
  std::optional<Nanos> first_unit(std::size_t runner_up, Nanos from, Nanos to) {
    while (from < to) {
      const UnitRange range = may_be_behind(runner_up, from, to);
      if (range.empty()) return {};
      if (is_behind(runner_up, value_of(range.first))) return range.first;
      const Nanos middle = range.first + (range.last - range.first) / 2;
      if (const auto found = first_unit(runner_up, range.first, middle)) return found;
      from = middle;
      to = range.last;
    }
    return {};
  }

  /// Returns the value nearest to the current one, towards `end`, at which the best schedule is
  /// behind.
  std::optional<Nanos> find_first(std::size_t runner_up, Nanos end) {
    const Nanos units = (end - now_) / unit_;
    const auto found = first_unit(runner_up, 0, units);
    if (!found && !is_behind(runner_up, end)) return {};
    return find_start(runner_up, found, end);
  }

  /// Returns the value from which on the runner-up gains, nanosecond by nanosecond, where the best
  /// schedule is behind at `found` units, or at `end` and at no whole number of units before it.
  Nanos find_start(std::size_t runner_up, std::optional<Nanos> found, Nanos end) {
    const Nanos units = (end - now_) / unit_;
    if (tie_ > 0) found = walk_back(runner_up, found.value_or(units));
    const Nanos last = found ? value_of(*found) : end;
    const bool is_near = std::abs(last - now_) <= kRounding;
    const Nanos before = is_near ? 0 : std::max<Nanos>(0, found ? *found - 2 : units);
    const Nanos first = value_of(before);
    if (std::abs(last - first) > kMaxScanned) return turn_between(runner_up, first, last);
    const Nanos sign = unit_ < 0 ? -1 : 1;
    for (Nanos value = first + sign; value != last; value += sign)
      if (is_behind_by(0, runner_up, value)) return value;
    return last;
  }

  /// Returns the first of the units up to `units` over which the runner-up is ahead, if only by a
  /// nanosecond; nullopt where it is not ahead there.
  std::optional<Nanos> walk_back(std::size_t runner_up, Nanos units) {
    const auto is_ahead = [&](Nanos count) { return is_behind_by(0, runner_up, value_of(count)); };
    if (!is_ahead(units)) return {};
    Nanos ahead = units;
    Nanos behind = units;
    for (Nanos step = 1; ahead > 0; step *= 2) {
      behind = std::max<Nanos>(0, ahead - step);
      if (!is_ahead(behind)) break;
      ahead = behind;
    }
    while (ahead - behind > 1) {
      const Nanos middle = behind + (ahead - behind) / 2;
      (is_ahead(middle) ? ahead : behind) = middle;
    }
    return ahead;
  }

  /// Whether the challenger may be ahead between two values without being ahead at either: no time
  /// between them is less than at the lower value or more than at the higher one.
  bool may_be_behind_between(std::size_t runner_up, Nanos from, Nanos to) {
    const double best = fastest(0, std::max(from, to)).second;
    return timer_.is_convex() && fastest(runner_up, std::min(from, to), best).second < best;
  }

  /// Tries `parts` values beyond `ahead` and up to `to`, where the challenger may be ahead.
  std::optional<Nanos> first_between(std::size_t runner_up, Nanos ahead, Nanos to, Nanos parts) {
    const bool is_last = parts == 1 || std::abs(to - ahead) == 1;
    const bool is_found = is_behind(runner_up, to);
    if (is_last) return is_found ? std::optional(turn_between(runner_up, ahead, to)) : std::nullopt;
    if (!is_found && !may_be_behind_between(runner_up, ahead, to)) return {};
    const Nanos middle = ahead + (to - ahead) / 2;
    if (const auto found = first_between(runner_up, ahead, middle, parts / 2)) return found;
    return first_between(runner_up, middle, to, parts / 2);
  }

  /// Tries the values of a grid. It is all that can be done where times are not convex, and finds
  /// what rounding alone decides: schedules that take equally long but for a few nanoseconds.
  std::optional<Nanos> find_on_grid(std::size_t runner_up, Nanos end) {
    Nanos ahead = now_;
    for (Nanos step = 1; step <= kGrid; ++step) {
      const Nanos whole = (end - now_) / (kGrid * kGrid);
      const Nanos rest = (end - now_) % (kGrid * kGrid);
      const Nanos next = now_ + whole * step * step + rest * step * step / (kGrid * kGrid);
      if (next == ahead) continue;
      if (const auto found = first_between(runner_up, ahead, next, kParts)) return found;
      ahead = next;
    }
    return {};
  }

  PlanTimer& timer_;
  const std::vector<Plan>& ranked_;
  const std::vector<BreakEvenCandidate>& candidates_;
  Nanos limit_ = 0;
  Nanos now_ = 0;
  Nanos unit_ = 1;  ///< negative where the limit is below the current value
  double tie_ = 0;  ///< the fraction of the step within which schedules are tied
};

/// Plans whose order does not depend on costs, and the names of the other schedules.
struct FixedOrders {
  std::vector<Plan> ranked;
  std::vector<std::string> searched;
};

FixedOrders find_fixed_orders(const std::vector<Plan>& ranked) {
  FixedOrders orders;
  std::vector<std::string>& searched = orders.searched;
  for (const Plan& plan : ranked) {
    const std::string& name = plan.configuration.schedule;
    if (!find_schedule(name).reads_costs)
      orders.ranked.push_back(plan);
    else if (std::find(searched.begin(), searched.end(), name) == searched.end())
      searched.push_back(name);
  }
  return orders;
}

}  // namespace

BreakEvens find_break_evens(const WhatIf& what_if, const std::vector<Plan>& plans) {
  BreakEvens all;
  if (what_if.has_cost_file()) return all;
  const auto [ranked, searched] = find_fixed_orders(plans);
  const std::vector<BreakEvenCandidate> candidates = find_candidates(ranked);
  if (candidates.size() < 2) return all;
  all.best = ranked[0].configuration.schedule;
  all.left_out = searched;
  const UniformCost of_rank = what_if.cost_of(ranked[0].configuration);
  const UniformCost& flags = what_if.flags();
  const auto max_of = [](const UniformCost& cost) {
    return 8 * (cost.forward + cost.full_backward());
  };
  PlanTimer timer(what_if, ranked);
  try {
    for (const CostParameter& parameter : parameters()) {
      const bool is_message = parameter.is_message;
      if (flags.backward && !is_message) continue;  // --b would not follow
      const Nanos max_value = max_of(is_message ? of_rank : flags);
      const std::string name =
          (what_if.divides_model() && !is_message ? "total-" : "") + parameter.name;
      timer.vary(parameter);
      bool changes = false;
      for (const Nanos limit : {max_value, Nanos{0}})
        if (auto found = BreakEvenSearch(timer, ranked, candidates, limit).nearest(name)) {
          all.found.push_back(*std::move(found));
          changes = true;
        }
      if (!changes) all.unaffected.push_back(name);
    }
  } catch (const TooManySimulations&) {
    return {};
  }
  return all;
}

}  // namespace bubblescope::tools

// Searches a grid, then bisects, between the step times of each schedule's best configurations.
#include "tools/plan/break_even.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <utility>

#include "sim/model/schedule_def.h"

namespace bubblescope::tools {

namespace {

constexpr InstructionId kMaxInstructions = 1 << 17;     ///< a larger program is too slow to vary
constexpr std::int64_t kMaxKeptInstructions = 1 << 22;  ///< instructions of all programs kept
constexpr std::int64_t kMaxTimedInstructions = 100'000'000;  ///< instructions, over all costs
constexpr Nanos kGrid = 24;   ///< steps of the grid; the smallest ones are next to the current cost
constexpr Nanos kParts = 16;  ///< of a grid step, where a rival may be ahead and behind again

struct Parameter {
  std::string name;
  Nanos& (*of)(UniformCost&);
};

const std::vector<Parameter>& parameters() {
  static const std::vector<Parameter> all{
      {"p2p", [](UniformCost& cost) -> Nanos& { return cost.message; }},
      {"i", [](UniformCost& cost) -> Nanos& { return cost.input_grad; }},
      {"w", [](UniformCost& cost) -> Nanos& { return cost.weight_grad; }},
  };
  return all;
}

/// Thrown where too many simulations would be needed.
struct TooManySimulations {};

/// Times plans under other costs, each at most once per cost.
class PlanTimer {
 public:
  PlanTimer(const WhatIf& what_if, const std::vector<Plan>& ranked)
      : what_if_(what_if), ranked_(ranked), lowered_(ranked.size()), times_(ranked.size()) {}

  /// Discards the times of another parameter.
  void vary(const Parameter& parameter) {
    parameter_ = &parameter;
    for (auto& times : times_) times.clear();
  }

  /// Returns the time per sample with the parameter at `value`.
  double time(std::size_t plan, Nanos value) {
    const auto known = times_[plan].find(value);
    if (known != times_[plan].end()) return known->second;
    const Configuration& configuration = ranked_[plan].configuration;
    const WhatIf::Lowered& lowered = lower(plan);
    timed_ += lowered.program.size();
    if (timed_ > kMaxTimedInstructions) throw TooManySimulations();
    UniformCost flags = what_if_.flags();
    parameter_->of(flags) = value;
    const UniformCost cost = what_if_.share_of_rank(flags, configuration);
    const double time = static_cast<double>(what_if_.step(lowered, cost)) /
                        static_cast<double>(configuration.samples());
    times_[plan].emplace(value, time);
    return time;
  }

  /// Returns the current value of the flag.
  Nanos now() const {
    UniformCost flags = what_if_.flags();
    return parameter_->of(flags);
  }

  /// Whether a higher cost never makes a plan faster.
  bool is_monotone() const { return !what_if_.shares_links(); }

  /// Returns a lower bound of a plan's time while the flag is at least `min_value`; 0 where
  /// unknown.
  double bound(std::size_t plan, Nanos min_value) {
    if (!is_monotone()) return 0;
    return min_value == now() ? ranked_[plan].nanos_per_sample() : time(plan, min_value);
  }

 private:
  const WhatIf::Lowered& lower(std::size_t plan) {
    if (lowered_[plan]) return *lowered_[plan];
    lowered_[plan] = what_if_.lower_plan(ranked_[plan].configuration);
    held_ += lowered_[plan]->program.size();
    if (lowered_[plan]->program.size() > kMaxInstructions || held_ > kMaxKeptInstructions)
      throw TooManySimulations();
    return *lowered_[plan];
  }

  const WhatIf& what_if_;
  const std::vector<Plan>& ranked_;
  const Parameter* parameter_ = nullptr;
  std::vector<std::optional<WhatIf::Lowered>> lowered_;
  std::vector<std::map<Nanos, double>> times_;
  std::int64_t held_ = 0;
  std::int64_t timed_ = 0;
};

/// A schedule's plans, fastest first under current costs.
struct BreakEvenCandidate {
  std::vector<std::size_t> plans;
};

/// Schedules that search for an order are left out, because every cost gives them another order.
std::vector<BreakEvenCandidate> find_candidates(const std::vector<Plan>& ranked) {
  std::vector<BreakEvenCandidate> candidates;
  std::map<std::string, std::size_t> index;
  for (std::size_t at = 0; at < ranked.size(); ++at) {
    const std::string& schedule = ranked[at].configuration.schedule;
    const bool searched = find_schedule(schedule).reads_costs;
    if (searched && at == 0) return {};
    if (searched) continue;
    const auto [known, is_new] = index.try_emplace(schedule, candidates.size());
    if (is_new) candidates.emplace_back();
    candidates[known->second].plans.push_back(at);
  }
  return candidates;
}

/// Compares the best schedule with the others while one parameter goes from its current value to
/// `limit`. A plan's time never falls when a cost rises, so its time at the low end is a lower
/// bound, and only a few of a schedule's plans have to be timed at every value.
class BreakEvenSearch {
 public:
  BreakEvenSearch(PlanTimer& timer, const std::vector<Plan>& ranked,
                  const std::vector<BreakEvenCandidate>& candidates, Nanos limit)
      : timer_(timer), ranked_(ranked), candidates_(candidates), limit_(limit) {
    now_ = timer.now();
  }

  /// Returns the rival that is ahead first, in the configuration in which it is.
  std::optional<traces::BreakEven> nearest(const std::string& parameter) {
    std::optional<traces::BreakEven> found;
    Nanos end = limit_;
    for (std::size_t runner_up = 1; runner_up < candidates_.size() && end != now_; ++runner_up) {
      const auto value = nearest(runner_up, end);
      if (!value || (found && *value == found->at)) continue;
      found = {parameter, now_, *value, ranked_[fastest(runner_up, *value).first].configuration};
      end = *value;
    }
    return found;
  }

 private:
  static constexpr double kForever = std::numeric_limits<double>::infinity();

  /// The lower bound of a plan between the flag's current value and the limit.
  double bound(std::size_t plan) { return timer_.bound(plan, std::min(now_, limit_)); }

  /// The fastest plan of a schedule among those faster than `below`, and its time.
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

  bool is_behind(std::size_t runner_up, Nanos value) {
    const double best = fastest(0, value).second;
    return fastest(runner_up, value, best).second < best;
  }

  /// Whether the rival may be ahead between two values without being ahead at either: no time
  /// between them is less than at the lower value or more than at the higher one.
  bool may_be_behind_between(std::size_t runner_up, Nanos from, Nanos to) {
    const double best = fastest(0, std::max(from, to)).second;
    return timer_.is_monotone() && fastest(runner_up, std::min(from, to), best).second < best;
  }

  /// Bisects for the value nearest to `ahead` at which the best schedule is behind, as at `behind`.
  Nanos turn_between(std::size_t runner_up, Nanos ahead, Nanos behind) {
    while (behind - ahead > 1 || ahead - behind > 1) {
      const Nanos middle = ahead + (behind - ahead) / 2;
      (is_behind(runner_up, middle) ? behind : ahead) = middle;
    }
    return behind;
  }

  /// Returns the first such value beyond `ahead` and up to `to`, in `parts` steps where there may
  /// be one.
  std::optional<Nanos> first_between(std::size_t runner_up, Nanos ahead, Nanos to, Nanos parts) {
    if (is_behind(runner_up, to) && (parts == 1 || to - ahead == 1 || ahead - to == 1))
      return turn_between(runner_up, ahead, to);
    if (parts == 1 || to - ahead == 1 || ahead - to == 1) return {};
    if (!is_behind(runner_up, to) && !may_be_behind_between(runner_up, ahead, to)) return {};
    const Nanos middle = ahead + (to - ahead) / 2;
    if (const auto found = first_between(runner_up, ahead, middle, parts / 2)) return found;
    return first_between(runner_up, middle, to, parts / 2);
  }

  /// Returns the value nearest to the current one, towards `to`, at which the best schedule is
  /// behind.
  std::optional<Nanos> nearest(std::size_t runner_up, Nanos to) {
    Nanos ahead = now_;
    for (Nanos step = 1; step <= kGrid; ++step) {
      const Nanos whole = (to - now_) / (kGrid * kGrid);
      const Nanos rest = (to - now_) % (kGrid * kGrid);
      const Nanos next = now_ + whole * step * step + rest * step * step / (kGrid * kGrid);
      if (next == ahead) continue;
      if (const auto found = first_between(runner_up, ahead, next, kParts)) return found;
      ahead = next;
    }
    return std::nullopt;
  }

  PlanTimer& timer_;
  const std::vector<Plan>& ranked_;
  const std::vector<BreakEvenCandidate>& candidates_;
  Nanos limit_ = 0;
  Nanos now_ = 0;
};

std::vector<std::string> list_searched(const std::vector<Plan>& ranked) {
  std::vector<std::string> names;
  for (const Plan& plan : ranked) {
    const std::string& name = plan.configuration.schedule;
    if (find_schedule(name).reads_costs &&
        std::find(names.begin(), names.end(), name) == names.end())
      names.push_back(name);
  }
  return names;
}

}  // namespace

BreakEvens find_break_evens(const WhatIf& what_if, const std::vector<Plan>& ranked) {
  BreakEvens all;
  if (ranked.empty() || what_if.has_cost_file()) return all;
  const std::vector<BreakEvenCandidate> candidates = find_candidates(ranked);
  if (candidates.size() < 2) return all;
  all.left_out = list_searched(ranked);
  const UniformCost of_rank = what_if.cost_of(ranked[0].configuration);
  const UniformCost& flags = what_if.flags();
  const auto max_of = [](const UniformCost& cost) {
    return 8 * (cost.forward + cost.full_backward());
  };
  PlanTimer timer(what_if, ranked);
  try {
    for (const Parameter& parameter : parameters()) {
      const bool is_message = parameter.name == "p2p";
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

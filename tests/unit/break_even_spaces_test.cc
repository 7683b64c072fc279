// Random plan spaces by brute force: the best plan, the ranking and the break-even points.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

#include "tests/support/sanitized.h"
#include "tools/plan/break_even.h"

namespace bubblescope::tests {
namespace {

constexpr Nanos kQuantum = 96;

struct Space {
  tools::PredictOptions options;
  bool whole_model = false;
  std::vector<Configuration> configurations;
};

Space random_space(std::mt19937& random) {
  const auto pick = [&](Nanos low, Nanos high) {
    return low + static_cast<Nanos>(random() % static_cast<std::uint32_t>(high - low + 1));
  };
  Space space;
  UniformCost& cost = space.options.cost.uniform;
  // Multiples of the numbers of chunks and slices: nothing is rounded at multiples of the quantum.
  cost.forward = kQuantum * pick(5, 30);
  cost.input_grad = kQuantum * pick(5, 30);
  cost.weight_grad = kQuantum * pick(3, 30);
  cost.message = kQuantum * pick(0, 12);
  const std::vector<std::string> names{"1f1b",        "gpipe", "zb-h1",         "zb-h2",
                                       "interleaved", "bfs",   "eager-1f1b",    "zb-v",
                                       "hanayo",      "naive", "interleaved-zb"};
  tools::Axes axes;
  for (const std::string& name : names)
    if (random() % 3 == 0) axes.schedules.push_back(name);
  if (axes.schedules.size() < 2) axes.schedules = {"1f1b", "interleaved"};
  axes.ranks = {2, 4};
  axes.chunks = {2, 4};
  axes.microbatches =
      random() % 2 == 0 ? std::vector<std::int32_t>{4, 8} : std::vector<std::int32_t>{8};
  space.configurations = tools::combine(axes);
  return space;
}

struct Turn {
  Nanos at = 0;
  std::vector<std::string> schedules;  ///< those that are ahead there, all equally fast

  bool operator==(const Turn&) const = default;
};

/// Returns the time per sample of every schedule in its best configuration, with a flag at a value.
class BruteForce {
 public:
  BruteForce(const tools::WhatIf& what_if, const std::vector<Plan>& ranked) : what_if_(what_if) {
    for (const Plan& plan : ranked)
      plans_.emplace_back(plan.configuration, what_if.lower_plan(plan.configuration));
  }

  std::map<std::string, double> times(Nanos UniformCost::*flag, Nanos value) const {
    UniformCost cost = what_if_.flags();
    cost.*flag = value;
    std::map<std::string, double> best;
    for (const auto& [which, lowered] : plans_) {
      const double time =
          static_cast<double>(what_if_.step(lowered, what_if_.share_of_rank(cost, which))) /
          static_cast<double>(which.samples());
      const auto [known, is_new] = best.emplace(which.schedule, time);
      if (!is_new) known->second = std::min(known->second, time);
    }
    return best;
  }

  std::optional<Turn> first_turn(const std::string& best, Nanos UniformCost::*flag, Nanos step,
                                 Nanos max_value) const {
    for (Nanos value = what_if_.flags().*flag; value >= 0 && value <= max_value; value += step) {
      const auto all = times(flag, value);
      double least = all.at(best);
      Turn turn{value, {}};
      for (const auto& [schedule, time] : all) {
        if (time < least) turn.schedules.clear();
        if (time < all.at(best) && time <= least) turn.schedules.push_back(schedule);
        least = std::min(least, time);
      }
      if (!turn.schedules.empty()) return turn;
    }
    return {};
  }

 private:
  const tools::WhatIf& what_if_;
  std::vector<std::pair<Configuration, tools::WhatIf::Lowered>> plans_;
};

TEST(RandomPlanSpaces, TurnWhereTryingEveryValueSaysSo) {
  std::mt19937 random(20);
  int turns = 0;
  for (int attempt = 0; attempt < random_cases(100); ++attempt) {
    const Space space = random_space(random);
    const tools::WhatIf what_if(tools::PredictInputs(space.options), space.whole_model);
    std::vector<Plan> plans;
    for (const Configuration& which : space.configurations)
      if (Outcome outcome = what_if.evaluate(which); outcome.plan)
        plans.push_back(*std::move(outcome.plan));
    const std::vector<Plan> ranked = rank_plans(std::move(plans));
    ASSERT_FALSE(ranked.empty());
    for (std::size_t at = 1; at < ranked.size(); ++at)
      ASSERT_LE(ranked[at - 1].nanos_per_sample(), ranked[at].nanos_per_sample());
    const BruteForce brute(what_if, ranked);
    const std::string best = ranked[0].configuration.schedule;
    const UniformCost& cost = space.options.cost.uniform;
    const Nanos max_value = 8 * (cost.forward + cost.full_backward());
    const tools::BreakEvens found = tools::find_break_evens(what_if, ranked);
    for (const auto& [name, flag] :
         {std::pair{"p2p", &UniformCost::message}, std::pair{"i", &UniformCost::input_grad},
          std::pair{"w", &UniformCost::weight_grad}})
      for (const Nanos step : {1, -1}) {
        const std::optional<Turn> expected =
            brute.first_turn(best, flag, step * kQuantum, max_value);
        const auto is_it = [&, name = name](const traces::BreakEven& turn) {
          return turn.parameter == name && (turn.at > turn.now) == (step > 0);
        };
        const auto turn = std::find_if(found.found.begin(), found.found.end(), is_it);
        const std::string where = fmt::format("attempt {}, {} going {}", attempt, name, step);
        if (turn == found.found.end()) {
          EXPECT_FALSE(expected.has_value()) << where << " at " << expected->at;
          continue;
        }
        ++turns;
        // At no earlier multiple is another schedule ahead; it may be between two of them.
        if (expected) {
          EXPECT_GE(step * expected->at, step * turn->at) << where;
        }
        const auto times = brute.times(flag, turn->at);
        const double least =
            std::min_element(times.begin(), times.end(), [](const auto& left, const auto& right) {
              return left.second < right.second;
            })->second;
        EXPECT_GT(times.at(best), least) << where;
        EXPECT_EQ(times.at(turn->runner_up.schedule), least) << where << turn->runner_up.schedule;
      }
  }
  EXPECT_GT(turns, random_cases(50));
}

}  // namespace
}  // namespace bubblescope::tests

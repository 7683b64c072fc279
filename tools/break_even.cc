// Grids, then bisection: both times are piecewise linear in every cost.
#include "tools/break_even.h"

#include <algorithm>
#include <optional>

#include "sim/model/schedule_def.h"

namespace bubblescope {

namespace {

constexpr std::size_t kMostRivals = 12;
constexpr InstructionId kMostInstructions = 1 << 17;  ///< a larger program is too slow to vary
constexpr Nanos kGrid = 24;

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

/// A plan that can be timed again.
struct Contender {
  Configuration configuration;
  WhatIf::Lowered lowered;
};

/// Of how long a sample takes, with one parameter at a value.
class Race {
 public:
  Race(const WhatIf& what_if, const Parameter& parameter)
      : what_if_(what_if), parameter_(parameter) {}

  Nanos now(const Contender& contender) const {
    UniformCost cost = what_if_.cost_of(contender.configuration);
    return parameter_.of(cost);
  }

  bool is_behind(const Contender& best, const Contender& rival, Nanos value) const {
    return time(best, value) > time(rival, value);
  }

  /// The value nearest to `from` on the way to `to` at which `best` is behind.
  std::optional<Nanos> nearest(const Contender& best, const Contender& rival, Nanos from,
                               Nanos to) const {
    Nanos ahead = from;
    for (Nanos step = 1; step <= kGrid; ++step) {
      Nanos behind = from + (to - from) * step * step / (kGrid * kGrid);
      if (behind == ahead) continue;
      if (!is_behind(best, rival, behind)) {
        ahead = behind;
        continue;
      }
      while (behind - ahead > 1 || ahead - behind > 1) {
        const Nanos middle = ahead + (behind - ahead) / 2;
        (is_behind(best, rival, middle) ? behind : ahead) = middle;
      }
      return behind;
    }
    return std::nullopt;
  }

 private:
  double time(const Contender& contender, Nanos value) const {
    UniformCost cost = what_if_.cost_of(contender.configuration);
    parameter_.of(cost) = value;
    return static_cast<double>(what_if_.step(contender.lowered, cost)) /
           static_cast<double>(contender.configuration.samples());
  }

  const WhatIf& what_if_;
  const Parameter& parameter_;
};

std::vector<Contender> contenders_of(const WhatIf& what_if, const std::vector<Plan>& ranked) {
  std::vector<Contender> contenders;
  for (const std::size_t at : best_of_each_schedule(ranked)) {
    const Configuration& configuration = ranked[at].configuration;
    const bool searched = find_schedule(configuration.schedule).reads_costs;
    if (searched && at == 0) return {};
    if (searched) continue;
    Contender next{configuration, what_if.lower_plan(configuration)};
    const bool large = next.lowered.program.size() > kMostInstructions;
    if (large && at == 0) return {};
    if (!large) contenders.push_back(std::move(next));
    if (contenders.size() > kMostRivals) break;
  }
  return contenders;
}

/// The rival that comes first on the way from what the parameter is now to `limit`.
std::optional<BreakEven> nearest_of(const Race& race, const std::vector<Contender>& contenders,
                                    const std::string& parameter, Nanos limit) {
  const Nanos now = race.now(contenders[0]);
  std::optional<BreakEven> nearest;
  Nanos end = limit;
  for (std::size_t at = 1; at < contenders.size() && end != now; ++at) {
    const auto value = race.nearest(contenders[0], contenders[at], now, end);
    if (!value || (nearest && *value == nearest->at)) continue;
    nearest = {parameter, now, *value, contenders[at].configuration};
    end = *value;
  }
  return nearest;
}

}  // namespace

BreakEvens find_break_evens(const WhatIf& what_if, const std::vector<Plan>& ranked) {
  BreakEvens all;
  if (ranked.empty() || what_if.has_cost_file()) return all;
  const std::vector<Contender> contenders = contenders_of(what_if, ranked);
  if (contenders.size() < 2) return all;
  const UniformCost cost = what_if.cost_of(contenders[0].configuration);
  const Nanos most = 8 * (cost.forward + cost.full_backward());
  for (const Parameter& parameter : parameters()) {
    if (cost.backward && parameter.name != "p2p") continue;  // --b would not follow
    const Race race(what_if, parameter);
    bool changes = false;
    for (const Nanos limit : {most, Nanos{0}})
      if (auto found = nearest_of(race, contenders, parameter.name, limit)) {
        all.found.push_back(*std::move(found));
        changes = true;
      }
    if (!changes) all.stays_best.push_back(parameter.name);
  }
  return all;
}

}  // namespace bubblescope

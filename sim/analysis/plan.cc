// Ranks plans.
#include "sim/analysis/plan.h"

#include <algorithm>
#include <limits>
#include <set>
#include <tuple>

#include "sim/analysis/highest_peak.h"

namespace bubblescope::inline sim {

Plan summarize(const Configuration& configuration, const BubbleReport& report) {
  Plan plan;
  plan.configuration = configuration;
  plan.configuration.shape = report.shape;
  if (report.job) plan.outside_pipeline = report.job->outside_pipeline;
  plan.step = report.makespan + plan.outside_pipeline;
  plan.lower_bound = report.lower_bound + plan.outside_pipeline;
  plan.bubble_ratio = report.bubble->ratio;
  const auto ranks = static_cast<Nanos>(report.ranks.size());
  for (const RankReport& rank : report.ranks) {
    plan.mean_busy += rank.busy;
    for (std::size_t cause = 0; cause < kIdleCauses; ++cause)
      plan.mean_idle[cause] += rank.idle_by_cause[cause];
  }
  const HighestPeak highest = find_highest_peak(report);
  plan.peak_activations = highest.activations;
  plan.peak_units = highest.units;
  plan.peak_bytes = highest.bytes;
  if (ranks == 0) return plan;
  plan.mean_busy /= ranks;
  for (Nanos& idle : plan.mean_idle) idle /= ranks;
  return plan;
}

std::vector<Plan> rank_plans(std::vector<Plan> plans) {
  std::stable_sort(plans.begin(), plans.end(), [](const Plan& a, const Plan& b) {
    return std::tuple(a.nanos_per_sample(), a.memory()) <
           std::tuple(b.nanos_per_sample(), b.memory());
  });
  return plans;
}

std::vector<Plan> with_ties(std::vector<Plan> ranked, double width) {
  std::int32_t group = 0;
  double limit = -1;
  for (Plan& plan : ranked) {
    if (plan.nanos_per_sample() > limit) {
      ++group;
      limit = plan.nanos_per_sample() * (1 + width);
    }
    plan.tie_group = group;
  }
  return ranked;
}

std::vector<std::size_t> find_pareto_front(const std::vector<Plan>& ranked) {
  std::vector<std::size_t> front;
  double min_memory = std::numeric_limits<double>::infinity();
  for (std::size_t at = 0; at < ranked.size(); ++at) {
    if (ranked[at].memory() >= min_memory) continue;
    min_memory = ranked[at].memory();
    front.push_back(at);
  }
  return front;
}

std::vector<std::size_t> find_best_of_each_schedule(const std::vector<Plan>& ranked) {
  std::vector<std::size_t> best;
  std::set<std::string> seen;
  for (std::size_t at = 0; at < ranked.size(); ++at)
    if (seen.insert(ranked[at].configuration.schedule).second) best.push_back(at);
  return best;
}

}  // namespace bubblescope::inline sim

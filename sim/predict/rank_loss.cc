// Compares the steps before and after a loss.
#include "sim/predict/rank_loss.h"

#include <algorithm>
#include <array>
#include <utility>
#include <variant>

#include "sim/ir/error.h"
#include "sim/predict/interrupted_step.h"
#include "sim/predict/loss_policies.h"
#include "sim/predict/readiness.h"

namespace bubblescope::inline sim {

namespace {

/// Without caps, which are lists of one pipeline's ranks, and what the table does not show.
Config strip(const Config& config) {
  Config quiet = config;
  quiet.memory.cap.clear();
  quiet.memory.cap_bytes.clear();
  quiet.scenarios = {};
  quiet.slack = Slack::kSkip;
  if (auto* const table = std::get_if<CostTable>(&quiet.costs)) {
    table->noise.reset();
    table->outside_pipeline = 0;
  }
  return quiet;
}

Prediction predict_given(const ValidSchedule& schedule, const Config& config) {
  return predict(schedule, lower_or_refuse(schedule, choose_lowering(schedule, config)), config);
}

StepCost cost_of(const Prediction& step) {
  StepCost cost{step.report.makespan, 0};
  for (const RankReport& rank : step.report.ranks)
    cost.peak = std::max(cost.peak, rank.peak.activations);
  return cost;
}

}  // namespace

std::int32_t count_left_microbatches(std::int32_t microbatches, const LostRank& lost) {
  const std::int64_t all = std::int64_t{microbatches} * lost.replicas;
  return static_cast<std::int32_t>((all + lost.replicas - 2) / (lost.replicas - 1));
}

void expect_loss_config(const Config& config) {
  const auto refuse = [](const std::string& what) {
    throw Error("`lose` compares steps of one pipeline with those of all replicas, and " + what);
  };
  if (!config.injections.empty() || !config.slow_ranks.empty())
    refuse("other faults name ranks of one pipeline; leave `inject` and `slow` out");
  if (!config.arrivals.empty()) refuse("arrivals are of one; leave `arrivals` out");
  if (config.policy) refuse("chooses the order itself; leave `policy` out");
  if (std::holds_alternative<ModelCosts>(config.costs))
    refuse("a model prices the devices of one; give `costs` instead");
  const auto* const uniform = std::get_if<UniformCosts>(&config.costs);
  if (uniform != nullptr && uniform->network)
    refuse("a network has the nodes of one; leave `network` out");
  const auto* const table = std::get_if<CostTable>(&config.costs);
  if (table == nullptr) return;
  if (!table->replicas.empty())
    refuse("takes them as alike; leave 'replicas' out of the cost file");
  if (table->cluster || !table->links.empty() || !table->static_bytes.empty())
    refuse("ranks of one have links, nodes or bytes; leave them out of the cost file");
  if (has_lists(*table))
    refuse("its lists have the micro-batches of one; leave the cost file's lists out");
}

ValidSchedule reroute(const ValidSchedule& pipeline, const LostRank& lost, const Config& config) {
  Config fixed = strip(config);
  ValidSchedule best = lose_rank(pipeline, lost);
  if (!has_ready_policies(fixed)) return best;
  const Prediction given = predict_given(best, fixed);
  if (given.timing.traffic)
    throw Error("`lose` needs ops that do not slow each other; leave 'contended' out");
  Nanos shortest = given.report.makespan;
  const ValidSchedule merged = best;
  for (const ReadyPriority policy : kLossPolicies) {
    fixed.policy = policy;
    ReadyStep step = run_by_readiness(merged, fixed);
    fixed.policy.reset();
    const Nanos makespan = predict_given(step.schedule, fixed).report.makespan;
    if (makespan >= shortest) continue;
    shortest = makespan;
    best = std::move(step.schedule);
  }
  return best;
}

LossReport report_loss(const ValidSchedule& pipeline, const ValidSchedule& rerouted,
                       const std::optional<ValidSchedule>& left, const RankLoss& loss,
                       const Config& config) {
  const Config fixed = strip(config);
  LossReport report;
  report.loss = loss;
  report.microbatches = pipeline->shape.microbatches;
  const Prediction healthy = predict_given(pipeline, fixed);
  report.healthy = cost_of(healthy);
  const Prediction next = predict_given(rerouted, fixed);
  report.rerouted = cost_of(next);
  report.bound = next.report.lower_bound;
  if (loss.at) report.interrupted = interrupt_step(healthy, loss, fixed);
  report.left_microbatches = count_left_microbatches(report.microbatches, loss.lost);
  if (left) report.without_replica = cost_of(predict_given(*left, fixed));
  return report;
}

}  // namespace bubblescope::inline sim

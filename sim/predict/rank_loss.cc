// Compares the steps before and after a loss.
#include "sim/predict/rank_loss.h"

#include <algorithm>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "sim/analysis/highest_peak.h"
#include "sim/ir/error.h"
#include "sim/predict/choose_lowering.h"
#include "sim/predict/interrupted_step.h"
#include "sim/predict/loss_policies.h"
#include "sim/predict/readiness.h"

namespace bubblescope::inline sim {

namespace {

/// Drops caps, which are lists of one pipeline's ranks, and what the table of losses does not show.
Config drop_caps_and_unshown(const Config& config) {
  Config shown = config;
  shown.memory.cap.clear();
  shown.memory.cap_bytes.clear();
  shown.scenarios = {};
  shown.slack = Slack::kSkip;
  if (auto* const table = std::get_if<CostTable>(&shown.costs)) {
    table->noise.reset();
    table->outside_pipeline = 0;
  }
  return shown;
}

Prediction predict_given(const ValidSchedule& schedule, const Config& config) {
  return predict(schedule, lower_or_refuse(schedule, choose_lowering(schedule, config)), config);
}

StepCost cost_of(const Prediction& step) {
  return {step.report.makespan, find_highest_peak(step.report).activations};
}

}  // namespace

std::int32_t count_left_microbatches(std::int32_t microbatches, const LostRank& lost) {
  const std::int64_t all = std::int64_t{microbatches} * lost.replicas;
  return static_cast<std::int32_t>((all + lost.replicas - 2) / (lost.replicas - 1));
}

namespace {

void refuse_if(bool is_given, const std::string& what) {
  if (is_given) throw Error("`lose` cannot be combined with " + what);
}

bool is_contended(const CostTable& table) {
  const auto has_contended = [](const std::vector<StageEntry>& stages) {
    return std::any_of(stages.begin(), stages.end(),
                       [](const StageEntry& stage) { return stage.contended.has_value(); });
  };
  return !table.contended_message.empty() || has_contended(table.stages) ||
         has_contended(table.stage_kinds);
}

void expect_loss_table(const CostTable& table) {
  refuse_if(!table.replicas.empty(),
            "a cost file's 'replicas', because it takes all replicas as alike; leave them out");
  refuse_if(table.cluster.has_value(),
            "a cost file's 'cluster', which has the nodes of one pipeline; leave it out");
  refuse_if(!table.links.empty(),
            "a cost file's 'links', which are those between ranks of one pipeline; leave them out");
  refuse_if(
      !table.static_bytes.empty(),
      "a cost file's 'static_bytes', which lists the ranks of one pipeline; leave the list out");
  refuse_if(has_lists(table),
            "a cost file's lists, which have the micro-batches of one pipeline; leave them out");
  refuse_if(is_contended(table),
            "a cost file's 'contended', by which ops slow each other; leave it out");
}

}  // namespace

void expect_loss_config(const Config& config) {
  refuse_if(!config.injections.empty(),
            "`inject`, which names single ranks of one pipeline; leave it out");
  refuse_if(!config.slow_ranks.empty(),
            "`slow`, which names single ranks of one pipeline; leave it out");
  refuse_if(!config.arrivals.empty(),
            "`arrivals`, which lists the micro-batches of one pipeline; leave it out");
  refuse_if(config.policy.has_value(), "`policy`, because it tries all of them; leave it out");
  refuse_if(config.moves.sharding.has_value(),
            "`fsdp`, which posts collectives on the ranks of one pipeline; leave it out");
  refuse_if(config.moves.offload.has_value(),
            "`offload`, which binds copies of activations to a rank; leave it out");
  refuse_if(std::holds_alternative<ModelCosts>(config.costs),
            "`model`, which prices the devices of one pipeline; give `costs` instead");
  const auto* const uniform = std::get_if<UniformCosts>(&config.costs);
  refuse_if(uniform != nullptr && uniform->network,
            "`network`, which has the nodes of one pipeline; leave it out");
  if (const auto* const table = std::get_if<CostTable>(&config.costs)) expect_loss_table(*table);
}

ValidSchedule reroute(const ValidSchedule& pipeline, const LostRank& lost, const Config& config) {
  expect_loss_config(config);
  Config fixed = drop_caps_and_unshown(config);
  ValidSchedule best = lose_rank(pipeline, lost);
  if (!has_ready_policies(fixed)) return best;
  const Prediction given = predict_given(best, fixed);
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
  const Config fixed = drop_caps_and_unshown(config);
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

// Makes cost tables of partitions.
#include "tools/commands/partition_costs.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "sim/model/cost_lists.h"
#include "sim/model/join_stages.h"
#include "tools/print.h"
#include "traces/costs/cost_file_writer.h"

namespace bubblescope::tools {

namespace {

constexpr double kUsualShare = 0.5;

template <class Has>
bool any_stage(const CostTable& costs, const Has& has) {
  return std::any_of(costs.stages.begin(), costs.stages.end(), has);
}

bool has_messages(const CostTable& costs) {
  return costs.message.nanos() > 0 || has_message_entries(costs) || !costs.links.empty() ||
         costs.cluster;
}

bool has_updates(const CostTable& costs) {
  return costs.norm > 0 || any_stage(costs, [](const StageEntry& stage) {
           const UpdateCost& update = stage.update;
           return update.optimizer > 0 || update.reduce_grad > 0 || update.unshard > 0;
         });
}

bool has_contention(const CostTable& costs) {
  return !costs.contended_message.empty() ||
         any_stage(costs, [](const StageEntry& stage) { return stage.contended.has_value(); });
}

/// Lists the costs that the period of the stages does not count.
std::vector<std::string> find_uncounted(const CostTable& costs) {
  std::vector<std::string> uncounted;
  const auto add = [&](bool is_present, const char* what) {
    if (is_present) uncounted.emplace_back(what);
  };
  add(has_messages(costs), "messages");
  add(has_updates(costs), "weight updates and reductions");
  add(costs.outside_pipeline > 0, "the time outside the pipeline");
  add(costs.noise && costs.noise->is_random(), "noise");
  add(!costs.replicas.empty(), "how replicas differ");
  add(has_lists(costs), "how micro-batches differ");
  add(has_contention(costs), "contention");
  return uncounted;
}

/// Divides a whole backward.
void split_backward(StageEntry& stage, Nanos backward, double weight_grad_share) {
  const Nanos weight_grad = std::llround(static_cast<double>(backward) * weight_grad_share);
  stage.input_grad = backward - weight_grad;
  stage.weight_grad = weight_grad;
}

std::vector<StageEntry> stage_costs(const PartitionPlan& plan, double weight_grad_share) {
  std::vector<StageEntry> costs;
  for (const schedules::PartitionStage& stage : plan.partition.stages) {
    StageEntry& cost = costs.emplace_back();
    cost.forward = stage.forward;
    split_backward(cost, stage.backward, weight_grad_share);
    cost.activation_bytes = MemoryDelta{stage.activations, 0, -stage.activations};
    cost.weight_bytes = stage.parameters;
  }
  return costs;
}

/// Makes links between every rank of a stage and every rank of the next, in both directions.
std::vector<LinkEntry> make_links(const PartitionPlan& plan, Bytes bytes_per_second) {
  std::vector<LinkEntry> links;
  std::int32_t first = 0;
  const std::vector<schedules::PartitionStage>& stages = plan.partition.stages;
  for (std::size_t at = 0; at + 1 < stages.size(); ++at) {
    const std::int32_t next = first + stages[at].replicas;
    const TransferEntry transfer{std::llround(1e9 * static_cast<double>(stages[at].output) /
                                              static_cast<double>(bytes_per_second)),
                                 0,
                                 {}};
    for (std::int32_t from = first; from < next; ++from)
      for (std::int32_t to = next; to < next + stages[at + 1].replicas; ++to) {
        links.push_back({from, to, transfer});
        links.push_back({to, from, transfer});
      }
    first = next;
  }
  return links;
}

std::vector<LinkEntry> make_links(const PartitionPlan& plan, const PartitionOptions& options) {
  const std::vector<Bytes>& speeds = options.bytes_per_second;
  if (speeds.empty()) return {};
  return make_links(plan, *std::min_element(speeds.begin(), speeds.end()));
}

/// Gives every worker of a stage the bytes of the stage.
std::vector<Bytes> repeat_for_workers(const std::vector<Bytes>& of_stages,
                                      const PartitionPlan& plan) {
  std::vector<Bytes> bytes;
  for (std::size_t stage = 0; stage < of_stages.size(); ++stage)
    bytes.insert(bytes.end(), static_cast<std::size_t>(plan.partition.stages[stage].replicas),
                 of_stages[stage]);
  return bytes;
}

PartitionCosts write_profile_costs(const PartitionPlan& plan, const PartitionOptions& options) {
  PartitionCosts written;
  const double share = options.weight_grad_share.value_or(kUsualShare);
  if (!options.weight_grad_share)
    written.notes.push_back(
        fmt::format("{} does not say how backwards split: {} of each is written as the weight "
                    "gradient; --weight-grad-share changes that",
                    plan.graph.source, share));
  CostTable costs;
  costs.stages = stage_costs(plan, share);
  costs.links = make_links(plan, options);
  std::vector<Bytes> parameters;
  for (const schedules::PartitionStage& stage : plan.partition.stages)
    parameters.push_back(
        std::llround(options.parameter_copies * static_cast<double>(stage.parameters)));
  costs.static_bytes = repeat_for_workers(parameters, plan);
  written.text = traces::write_cost_file(costs);
  return written;
}

/// Splits backwards that the table has whole, if the share is given.
void split_backwards(CostTable& costs, const PartitionOptions& options,
                     std::vector<std::string>& notes) {
  const auto is_whole = [](const StageEntry& stage) { return stage.backward && !stage.input_grad; };
  const bool any = any_stage(costs, is_whole);
  if (any && !options.weight_grad_share)
    notes.push_back(costs.file +
                    " has whole backwards, which are written whole; --weight-grad-share 0.5 would "
                    "halve them");
  if (!any && options.weight_grad_share)
    notes.push_back("--weight-grad-share changes nothing: " + costs.file +
                    " says how its backwards split");
  if (!any || !options.weight_grad_share) return;
  const auto split = [&](std::vector<StageEntry>& stages) {
    for (StageEntry& stage : stages)
      if (is_whole(stage)) split_backward(stage, *stage.backward, *options.weight_grad_share);
  };
  split(costs.stages);
  std::for_each(costs.replicas.begin(), costs.replicas.end(), split);
}

/// Replaces links of ranks by those of the workers of replicated stages.
void place_on_workers(JoinedTable& joined, const PartitionPlan& plan,
                      const PartitionOptions& options, std::vector<std::string>& notes) {
  CostTable& costs = joined.table;
  const auto& stages = plan.partition.stages;
  const bool is_replicated =
      std::any_of(stages.begin(), stages.end(),
                  [](const schedules::PartitionStage& stage) { return stage.replicas > 1; });
  costs.static_bytes = repeat_for_workers(costs.static_bytes, plan);
  if (is_replicated && !costs.links.empty()) {
    costs.links.clear();
    joined.left_out.emplace_back("links");
  }
  if (options.bytes_per_second.empty()) return;
  if (has_messages(costs))
    notes.push_back(costs.file +
                    " has messages of its own, which are written; --bandwidth counts for the plan "
                    "alone");
  else
    costs.links = make_links(plan, options);
}

PartitionCosts write_joined_costs(const PartitionPlan& plan, const PartitionOptions& options) {
  PartitionCosts written;
  std::vector<std::vector<std::int32_t>> groups;
  for (const schedules::PartitionStage& stage : plan.partition.stages)
    groups.push_back(stage.layers);
  JoinedTable joined = join_stages(*plan.graph.costs, groups);
  split_backwards(joined.table, options, written.notes);
  place_on_workers(joined, plan, options, written.notes);
  if (!joined.left_out.empty())
    written.notes.push_back(fmt::format("not written: {}", fmt::join(joined.left_out, ", ")));
  written.text = traces::write_cost_file(joined.table);
  return written;
}

}  // namespace

void report_uncounted_costs(const CostTable& costs, const PartitionOptions& options) {
  const std::vector<std::string> uncounted = find_uncounted(costs);
  if (!uncounted.empty())
    print_message(
        "bubblescope: the period counts the mean compute time of the stages in {}, and leaves out: "
        "{}; simulate --costs counts them\n",
        costs.file, fmt::join(uncounted, ", "));
  if (!costs.static_bytes.empty())
    print_message(
        "bubblescope: the static_bytes of {} are not counted in what workers hold, but "
        "--parameter-copies times its weight_bytes\n",
        costs.file);
  const bool has_memory = any_stage(costs, [](const StageEntry& stage) {
    return stage.activation_bytes.has_value() || stage.weight_bytes.has_value();
  });
  if (options.memory && !has_memory)
    print_message(
        "bubblescope: {} does not say what its stages hold, so --memory limits nothing; add "
        "'activation_bytes' and 'weight_bytes'\n",
        costs.file);
  const bool has_sizes = costs.message.bytes > 0 || any_stage(costs, [](const StageEntry& stage) {
                           return stage.message_bytes.has_value();
                         });
  if (!options.bytes_per_second.empty() && !has_sizes)
    print_message(
        "bubblescope: {} gives no size of messages: --bandwidth counts what a stage saves as what "
        "it sends; add 'bytes' to 'message'\n",
        costs.file);
}

PartitionCosts write_partition_costs(const PartitionPlan& plan, const PartitionOptions& options) {
  return plan.graph.costs ? write_joined_costs(plan, options) : write_profile_costs(plan, options);
}

}  // namespace bubblescope::tools

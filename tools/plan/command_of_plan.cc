// Puts the flags of one plan together: what the question gave for all plans, and what the plan has
// of its own.
#include "tools/plan/command_of_plan.h"

#include <fmt/format.h>

#include <string_view>
#include <vector>

#include "sim/ir/recompute.h"
#include "sim/ir/send_budget.h"
#include "sim/model/parallelism.h"
#include "tools/command_line.h"
#include "tools/flags/words.h"
#include "tools/plan/what_if.h"
#include "traces/plans/plan_table.h"

namespace bubblescope::tools {

namespace {

using Flags = std::vector<FlagWithValue>;

template <class Value>
void add(Flags& flags, std::string_view flag, const Value& value) {
  flags.push_back({std::string(flag), fmt::format("{}", value)});
}

/// Returns what was given for all plans.
Flags flags_of_all(const PlanQuestion& question) {
  Flags flags;
  for (const FlagWithValue& given : question.flags) {
    const bool is_of_whole_model = question.whole_model && given.flag == "--cap";
    if (!is_of_whole_model && !question.settled.contains(given.flag)) flags.push_back(given);
  }
  return flags;
}

/// Adds a rank's share of the times and of the limit that are those of a whole model.
void add_shares(Flags& flags, const PlanQuestion& question, const Configuration& configuration) {
  if (!question.whole_model) return;
  const std::int32_t ranks = configuration.shape.ranks;
  const UniformCost share = divide_among_ranks(question.predict.cost, ranks);
  const bool has_halves = share.backward && share.halves_add_up();  // they follow where not given
  add(flags, "--f", fmt::format("{}ns", share.forward));
  if (!has_halves || question.gives("--total-i"))
    add(flags, "--i", fmt::format("{}ns", share.input_grad));
  if (!has_halves || question.gives("--total-w"))
    add(flags, "--w", fmt::format("{}ns", share.weight_grad));
  if (share.backward) add(flags, "--b", fmt::format("{}ns", *share.backward));
  std::vector<std::string> caps;
  for (const Millionths cap : multiply_by_ranks(question.predict.memory.cap, ranks))
    caps.push_back(fmt::format("{}", static_cast<double>(cap) / 1e6));
  if (!caps.empty()) add(flags, "--cap", join(caps, ","));
}

void add_shape(Flags& flags, const PlanQuestion& question, const Configuration& configuration) {
  const ShapeOptions shape = shape_of(configuration, question.predict.shape);
  add(flags, "--pp", configuration.shape.ranks);
  if (shape.chunks) add(flags, "--vpp", *shape.chunks);
  add(flags, "-m", configuration.shape.microbatches);
  if (shape.slices) add(flags, "--slices", *shape.slices);
  if (shape.group_size) add(flags, "--microbatch-group-size", *shape.group_size);
  if (configuration.moe_overlap) flags.push_back({"--moe-overlap"});
  if (configuration.send_budget > 0)
    add(flags, "--send-budget", budget_text(configuration.send_budget));
  if (configuration.lookahead) {
    flags.push_back({"--fsdp"});
    add(flags, "--unshard-lookahead", traces::lookahead_text(configuration));
  }
}

void add_recomputation(Flags& flags, const Configuration& configuration) {
  if (configuration.recompute == Recompute::kNone) return;
  add(flags, "--recompute", name(configuration.recompute));
  if (!configuration.modules.empty())
    add(flags, "--recompute-modules", to_text(configuration.modules));
  if (configuration.recomputed == RecomputedLayers{}) return;
  add(flags, "--recompute-method", name_of(kRecomputeMethods, configuration.recomputed.method));
  add(flags, "--recompute-num-layers", configuration.recomputed.number);
}

void add_model(Flags& flags, const Plan& plan, bool has_experts) {
  const Configuration& configuration = plan.configuration;
  add(flags, "--tp", configuration.tensor);
  add(flags, "--dp", configuration.data);
  if (configuration.context > 1) add(flags, "--cp", configuration.context);
  if (has_experts) {
    add(flags, "--ep", configuration.expert);
    add(flags, "--etp", configuration.expert_tensor);
  }
  add(flags, "--micro-batch-size", configuration.micro_batch_size);
  add_recomputation(flags, configuration);
  add(flags, "--layout", plan.layout);
}

}  // namespace

std::string simulate_command(const PlanQuestion& question, const Plan& plan, bool has_experts) {
  Flags flags = flags_of_all(question);
  add_shares(flags, question, plan.configuration);
  add_shape(flags, question, plan.configuration);
  if (!plan.layout.empty()) add_model(flags, plan, has_experts);
  if (plan.gradients && !question.gives("--gradients"))
    add(flags, "--gradients", name_of(kGradientFormats, *plan.gradients));
  std::vector<std::string> words = words_of(flags);
  words.insert(words.begin(), plan.configuration.schedule);
  return format_command_line("simulate", words);
}

}  // namespace bubblescope::tools

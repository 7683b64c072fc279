// Writes the best plans as arguments of Megatron-LM and as toml of torchtitan.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "sim/ir/error.h"
#include "sim/ir/send_budget.h"
#include "traces/costs/megatron_layout.h"
#include "traces/plans/framework_layers.h"
#include "traces/plans/plan_table.h"
#include "traces/plans/runs_in.h"
#include "traces/text/time_axis.h"

namespace bubblescope::traces {

namespace {

/// A schedule as torchtitan's pipeline_parallel_schedule names it.
struct TorchSchedule {
  std::string_view schedule;
  std::string_view name;
  std::int32_t stages_per_rank;  ///< unless the configuration says more
};

constexpr std::array<TorchSchedule, 7> kTorchSchedules{{
    {"gpipe", "GPipe", 1},
    {"1f1b", "1F1B", 1},
    {"interleaved", "Interleaved1F1B", 2},
    {"bfs", "LoopedBFS", 2},
    {"interleaved-zb", "InterleavedZeroBubble", 2},
    {"zb-v", "ZBVZeroBubble", 2},
    {"dualpipev", "DualPipeV", 2},
}};

const TorchSchedule* find_torch_schedule(const std::string& schedule) {
  const auto* known =
      std::find_if(kTorchSchedules.begin(), kTorchSchedules.end(),
                   [&](const TorchSchedule& each) { return each.schedule == schedule; });
  return known == kTorchSchedules.end() ? nullptr : known;
}

/// The groups of ranks that have a copy of what ZeRO shards.
std::int32_t count_shard_groups(const Configuration& which, const TrainingSettings& training) {
  const std::int32_t all = which.data * which.context;
  return all / training.shard_ranks.value_or(all);
}

/// How the predicted step is trained. Megatron-LM overlaps nothing unless it is told to, and
/// gathers beside compute only where it reduces there.
std::string megatron_settings(const Plan& plan, const TrainingSettings& training) {
  const Configuration& which = plan.configuration;
  std::string text;
  const auto add_if = [&](bool is_on, const char* flag) {
    if (is_on) text += fmt::format(" --{}", flag);
  };
  add_if(which.tensor > 1 && training.sequence_parallel, "sequence-parallel");
  add_if(training.zero_stage > 0, "use-distributed-optimizer");
  const std::int32_t groups = count_shard_groups(which, training);
  if (groups > 1) text += fmt::format(" --{} {}", "num-distributed-optimizer-instances", groups);
  const bool overlaps = training.overlaps_gradients && which.data * which.context > 1;
  add_if(overlaps, "overlap-grad-reduce");
  add_if(overlaps && training.zero_stage > 0, "overlap-param-gather");
  add_if(training.overlaps_tensor && which.tensor > 1 && training.sequence_parallel,
         "tp-comm-overlap");
  add_if(plan.gradients.value_or(Gradients::kFp32) != Gradients::kFp32, "grad-reduce-in-bf16");
  add_if(which.moe_overlap && which.expert > 1, "overlap-moe-expert-parallel-comm");
  return text;
}

std::string write_megatron(const Plan& plan, const TrainingSettings& training) {
  const Configuration& which = plan.configuration;
  std::string text;
  const auto add = [&](const char* flag, std::int64_t value) {
    text += fmt::format("{}--{} {}", text.empty() ? "" : " ", flag, value);
  };
  add("tensor-model-parallel-size", which.tensor);
  add("pipeline-model-parallel-size", which.shape.ranks);
  if (which.shape.group_size)
    add("microbatch-group-size-per-virtual-pipeline-stage", *which.shape.group_size);
  if (which.context > 1) add("context-parallel-size", which.context);
  if (which.expert > 1) add("expert-model-parallel-size", which.expert);
  if (which.expert_tensor != which.tensor) add("expert-tensor-parallel-size", which.expert_tensor);
  add("micro-batch-size", which.micro_batch_size);
  add("global-batch-size", which.samples());
  if (which.recompute != Recompute::kNone)
    text += fmt::format(" --{} {}", "recompute-granularity", name(which.recompute));
  const std::string modules = which.modules.empty() && training.recomputes_up_projections
                                  ? name_of(kRecomputeModules, RecomputeModule::kUpProjection)
                                  : to_text(which.modules, " ");
  if (which.recompute == Recompute::kSelective && !modules.empty())
    text += fmt::format(" --{} {}", "recompute-modules", modules);
  if (which.recompute == Recompute::kFull)
    text += fmt::format(" --{} {} --{} {}", "recompute-method",
                        name_of(kRecomputeMethods, which.recomputed.method), "recompute-num-layers",
                        which.recomputed.number);
  const std::string layers = write_megatron_layers(parse_layout(plan.layout), which.shape.ranks);
  return text + (layers.empty() ? "" : " ") + layers + megatron_settings(plan, training) + "\n";
}

std::string write_torchtitan(const Plan& plan, const TrainingSettings& training) {
  const Configuration& which = plan.configuration;
  const TorchSchedule& schedule = *find_torch_schedule(which.schedule);
  std::string text = fmt::format(
      "[training]\nlocal_batch_size = {}\nglobal_batch_size = {}\n\n"
      "[activation_checkpoint]\nmode = \"{}\"\n",
      std::int64_t{which.shape.microbatches} * which.micro_batch_size, which.samples(),
      name(which.recompute));
  if (which.recompute == Recompute::kSelective) text += "selective_ac_option = \"op\"\n";
  text += "\n[parallelism]\n";
  const auto add = [&](const char* key, std::int32_t value) {
    text += fmt::format("{} = {}\n", key, value);
  };
  const std::int32_t groups = count_shard_groups(which, training);
  if (groups > 1) add("data_parallel_replicate_degree", groups);
  add("tensor_parallel_degree", which.tensor);
  if (which.context > 1) add("context_parallel_degree", which.context);
  if (which.expert > 1) add("expert_parallel_degree", which.expert);
  if (which.expert > 1) add("expert_tensor_parallel_degree", which.expert_tensor);
  add("pipeline_parallel_degree", which.shape.ranks);
  text += fmt::format("pipeline_parallel_schedule = \"{}\"\n", schedule.name);
  add("pipeline_parallel_microbatch_size", which.micro_batch_size);
  return text + write_torchtitan_layers(parse_layout(plan.layout), which.shape.ranks,
                                        schedule.stages_per_rank);
}

/// Options of PyTorch's schedules that no framework's configuration has a key for; empty without
/// any.
std::string describe_options(const Configuration& which) {
  std::string text;
  if (which.send_budget > 0)
    text += which.send_budget == kUnlimitedSends
                ? ", without a send budget"
                : fmt::format(", with a send budget of {}", which.send_budget);
  if (which.lookahead) text += ", with the unshard lookahead " + to_string(*which.lookahead);
  return text.empty() ? text : text + ", which has no key: it is an argument of PyTorch's schedule";
}

bool has_framework(const Plan& plan, Framework framework) {
  if (framework == Framework::kMegatron) return runs_in(plan.configuration, "megatron");
  return runs_in(plan.configuration, "pytorch") &&
         find_torch_schedule(plan.configuration.schedule) != nullptr;
}

}  // namespace

std::string write_plan_config(const PlanTable& table, Framework framework, std::size_t count) {
  if (!table.training)
    throw Error("`format` megatron and torchtitan write the layers of stages; give a `model`");
  if (table.plans.empty())
    throw Error(Fault::kProblem, "no plan fits; `format` text has the reasons");
  const bool is_megatron = framework == Framework::kMegatron;
  std::vector<std::pair<std::int32_t, std::int32_t>> shapes;
  std::string text;
  for (std::size_t at = 0; at < table.plans.size() && shapes.size() < count; ++at) {
    const Plan& plan = table.plans[at];
    const std::pair shape{plan.configuration.shape.ranks, plan.configuration.shape.chunks};
    if (!has_framework(plan, framework)) continue;
    if (std::find(shapes.begin(), shapes.end(), shape) != shapes.end()) continue;
    shapes.push_back(shape);
    text += fmt::format("{}# {}, pp {}, vpp {}: {} per step, #{} of the plan, layers {}{}\n",
                        text.empty() || is_megatron ? "" : "\n", plan.configuration.schedule,
                        shape.first, shape.second, format_time(plan.step), at + 1, plan.layout,
                        describe_options(plan.configuration));
    text += is_megatron ? write_megatron(plan, *table.training)
                        : write_torchtitan(plan, *table.training);
  }
  const bool all_have_options =
      std::all_of(table.plans.begin(), table.plans.end(),
                  [](const Plan& plan) { return !describe_options(plan.configuration).empty(); });
  if (text.empty() && is_megatron && all_have_options)
    throw Error(
        Fault::kProblem,
        "Megatron-LM has neither send budgets nor lookaheads of FSDP; leave `send_budget` and "
        "`unshard_lookahead` out");
  if (text.empty())
    throw Error(Fault::kProblem,
                fmt::format("{0} has none of the plans' schedules by name; `profile` {1} without "
                            "`schedules` plans those that it has",
                            is_megatron ? "Megatron-LM" : "torchtitan",
                            is_megatron ? "megatron" : "pytorch"));
  return text;
}

}  // namespace bubblescope::traces

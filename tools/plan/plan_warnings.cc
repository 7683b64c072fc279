// Checks one order per schedule that has a plan.
#include "tools/plan/plan_warnings.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "sim/analysis/asynchronous.h"
#include "sim/ir/counted.h"
#include "sim/ir/lower.h"
#include "sim/ir/op_kinds.h"
#include "sim/model/runtime.h"
#include "sim/predict/choose_lowering.h"
#include "tools/inputs/assumed_defaults.h"
#include "tools/inputs/inputs.h"
#include "tools/inputs/notes.h"
#include "tools/inputs/schedule_notes.h"
#include "tools/inputs/schedule_request.h"
#include "tools/inputs/unused_flags.h"
#include "tools/plan/model_plan.h"
#include "tools/print.h"
#include "traces/plans/runs_in.h"
#include "traces/schedules/pytorch_csv.h"

namespace bubblescope::tools {

namespace {

constexpr std::int64_t kMaxCheckedOps = 1 << 20;

using IsSame = bool (*)(const Configuration&, const Configuration&);

bool is_same_schedule(const Configuration& one, const Configuration& other) {
  return one.schedule == other.schedule;
}

bool has_same_stages(const Configuration& one, const Configuration& other) {
  return one.schedule == other.schedule && one.shape.ranks == other.shape.ranks &&
         one.shape.chunks == other.shape.chunks;
}

/// The smallest plan of every schedule, which is enough to answer questions about its ops.
/// Schedules that search for an order are left out, because a search takes longer than planning.
std::vector<Configuration> smallest_of_each(const std::vector<Plan>& ranked,
                                            IsSame is_same = is_same_schedule) {
  const auto ops_of = [](const Configuration& configuration) {
    const Shape& shape = configuration.shape;
    return std::int64_t{shape.ranks} * shape.chunks * shape.microbatches * shape.slices;
  };
  std::vector<Configuration> smallest;
  for (const Plan& plan : ranked) {
    const Configuration& next = plan.configuration;
    if (ops_of(next) > kMaxCheckedOps || find_schedule(next.schedule).reads_costs) continue;
    const auto known =
        std::find_if(smallest.begin(), smallest.end(),
                     [&](const Configuration& other) { return is_same(other, next); });
    if (known == smallest.end())
      smallest.push_back(next);
    else if (ops_of(next) < ops_of(*known))
      *known = next;
  }
  return smallest;
}

ValidSchedule order_of(const Configuration& configuration, const PredictInputs& inputs) {
  const ScheduleDef& def = find_schedule(configuration.schedule);
  const PredictInputs own = inputs.with([&](PredictOptions& flags) {
    flags.model = {};
    flags.shape = shape_of(configuration, std::move(flags.shape));
  });
  return build_schedule(def, make_request(def, own));
}

void warn_of_split_backwards(const std::vector<ValidSchedule>& orders, const UniformCost& cost) {
  if (cost.halves_add_up()) return;
  std::vector<std::string> splitting;
  for (const ValidSchedule& order : orders)
    if (has_kind(order, OpKind::kInputGrad)) splitting.push_back(order->name);
  if (splitting.empty()) return;
  print_message(
      "bubblescope: backwards are split by {}: they take i {} and w {}, the others b {}\n",
      fmt::join(splitting, ", "), to_text(cost.input_grad), to_text(cost.weight_grad),
      to_text(cost.full_backward()));
}

bool any_has_pairs(const std::vector<ValidSchedule>& orders) {
  return std::any_of(orders.begin(), orders.end(),
                     [](const ValidSchedule& order) { return has_pairs(order); });
}

bool any_has_pairs(const std::vector<Plan>& ranked, const PredictInputs& inputs) {
  for (const Configuration& configuration : smallest_of_each(ranked))
    if (has_pairs(order_of(configuration, inputs))) return true;
  return false;
}

/// Whether a larger micro-batch than the usual ones may be faster still: the plan has the largest
/// of them, and enough samples for twice as many in each.
bool has_largest_usual_micro_batch(const Configuration& configuration) {
  return configuration.micro_batch_size == kUsualMicroBatchSizes.back() &&
         configuration.shape.microbatches % 2 == 0;
}

/// Plans show no parts, which change steps only where pairs interleave them.
void warn_of_unused_parts(const std::vector<ValidSchedule>& orders) {
  if (!orders.empty() && !any_has_pairs(orders))
    print_message(
        "bubblescope: --parts changes nothing: no op of these steps is in an overlapped pair, as "
        "those of dualpipev are\n");
}

void warn_of_missing_flushes(const ValidSchedule& order) {
  if (order->weights.empty()) return;
  std::int32_t staleness = 0;
  for (const WeightReport& weights : account_for_weights(order, {}))
    staleness = std::max(staleness, weights.staleness);
  print_message(
      "bubblescope: {} does not flush: weights are up to {} old, and a step here "
      "fills and drains the pipeline, which training does once\n",
      order->name, counted(staleness, "update"));
}

/// Returns " --slices 2 (of schedules that slice sequences)", or nothing.
std::string describe_default_slices(const std::vector<std::string>& schedules,
                                    const ShapeOptions& shape) {
  if (shape.slices) return "";
  std::int32_t slices = 1;
  for (const std::string& name : schedules)
    slices = std::max(slices, default_slices(find_schedule(name), shape));
  if (slices == 1) return "";
  return fmt::format(" --slices {} (of schedules that slice sequences)", slices);
}

void print_defaults(const std::string& text) {
  if (!text.empty()) print_message("bubblescope: planned for{} by default\n", text);
}

void note_cut_stages(const std::vector<Plan>& ranked, const PredictInputs& inputs) {
  std::vector<ValidSchedule> orders;
  for (const Configuration& configuration : smallest_of_each(ranked, has_same_stages))
    orders.push_back(order_of(configuration, inputs));
  note_restaged_plans(orders, inputs);
}

/// Notes what any of the plans has against Megatron-LM's defaults.
void note_megatron_defaults(const std::vector<Plan>& ranked, const PredictInputs& inputs,
                            std::span<const PredictedOps> steps) {
  if (ranked.empty()) return;
  ModelOnDevices on = inputs.files().model.value();
  const std::optional<Gradients>& theirs = inputs.flags().model.unstated.gradients;
  bool differ = false;
  for (const Plan& plan : ranked) {
    on.parallel.tensor = std::max(on.parallel.tensor, plan.configuration.tensor);
    on.parallel.data = std::max(on.parallel.data, plan.configuration.data);
    on.parallel.context = std::max(on.parallel.context, plan.configuration.context);
    differ = differ || (theirs && plan.gradients && *plan.gradients != *theirs);
  }
  note_assumed_defaults(inputs, on, steps);
  if (differ)
    print_message("bubblescope: some plans have other gradients: {}\n",
                  describe_megatron_gradients(*theirs));
}

std::string more_than_a_limit(double excess) {
  const double percent = 100 * excess;
  if (percent < 0.1) return "up to 0.1 % more";
  if (percent >= 1000) return "over 1000 % more";
  return percent >= 10 ? fmt::format("{:.0f} % more", percent)
                       : fmt::format("{:.2g} % more", percent);
}

}  // namespace

void report_default_slices(const std::vector<std::string>& schedules, const ShapeOptions& shape) {
  print_defaults(describe_default_slices(schedules, shape));
}

void report_defaults(const Axes& axes, const ShapeOptions& shape) {
  const auto interleaves = [](const std::string& name) {
    return find_schedule(name).default_chunks > 1;
  };
  const bool takes_chunks =
      axes.chunks.empty() && std::any_of(axes.schedules.begin(), axes.schedules.end(), interleaves);
  std::string text;
  if (axes.ranks.empty()) text += " --pp 4";
  if (axes.microbatches.empty()) text += " -m 8";
  if (takes_chunks) text += " --vpp 2 (of schedules that interleave)";
  print_defaults(text + describe_default_slices(axes.schedules, shape));
}

void warn_of_plans(const std::vector<Plan>& ranked, const PredictInputs& inputs) {
  const PredictOptions& flags = inputs.flags();
  const std::vector<Configuration> smallest = smallest_of_each(ranked);
  std::vector<ValidSchedule> orders;
  std::vector<Program> programs;
  orders.reserve(smallest.size());
  programs.reserve(smallest.size());
  std::vector<PredictedOps> steps;
  for (const Configuration& configuration : smallest) {
    const ValidSchedule& order = orders.emplace_back(order_of(configuration, inputs));
    warn_of_missing_flushes(order);
    auto lowered = lower(order, choose_lowering(order, inputs.config()));
    auto* const program = std::get_if<Program>(&lowered);
    if (program == nullptr) continue;
    steps.push_back({&order.get(), &programs.emplace_back(std::move(*program))});
  }
  warn_of_unused_step_flags(inputs, steps);
  if (flags.model.given()) {
    note_megatron_defaults(ranked, inputs, steps);
    warn_of_unused_unit(flags.memory, "plans of a model show bytes");
    // The warning above speaks of an order of parts.
    if (flags.model.parts && !flags.model.parts->pair_order) warn_of_unused_parts(orders);
  } else if (!flags.cost.file.empty()) {
    note_cut_stages(ranked, inputs);
  } else if (!steps.empty()) {
    warn_of_split_backwards(orders, flags.cost.uniform);
  }
}

void note_untried(const std::vector<Plan>& ranked, const PredictInputs& inputs,
                  const PlanQuestion& question) {
  const PredictOptions& flags = inputs.flags();
  struct Untried {
    const char* flag;
    const char* values;
    bool may_help;
  };
  const bool has_experts = inputs.files().model.value().model.experts.has_value();
  const bool has_whole_experts = !flags.model.parts && has_experts;
  const bool hides_messages = has_whole_experts && any_has_pairs(ranked, inputs);
  const bool waits_for_experts = has_whole_experts && flags.shape.moe_overlap;
  const bool may_interleave = hides_messages && flags.model.lengths_file.empty() &&
                              flags.cost.lower.overlap != Overlap::kSerial;
  const bool divides_experts =
      has_experts && std::any_of(ranked.begin(), ranked.end(), [](const Plan& plan) {
        return plan.configuration.expert_tensor > 1;
      });
  const bool splits_stages = std::any_of(ranked.begin(), ranked.end(), [](const Plan& plan) {
    return plan.configuration.shape.ranks > 1;
  });
  const bool is_largest =
      !ranked.empty() && has_largest_usual_micro_batch(ranked.front().configuration);
  const bool may_split_output = splits_stages && flags.shape.profile == Profile::kNone;
  const Untried all[] = {
      {"--cp", "1,2,4 (sequences split over ranks)", true},
      {"--etp", "1 (experts whole on their ranks)", divides_experts},
      {"--recompute", "none,selective,full (where selective was not tried)",
       !names_modules(flags.model.runtime)},
      {"--schedules", "all,vocab (the output layer split over all ranks)", may_split_output},
      {"--overlap", "fused (pairs that hide the experts' messages)", hides_messages},
      {"--parts", "megatron (which lets --moe-overlap hide messages)", waits_for_experts},
      {"--parts", "dualpipe (pairs that interleave their parts)", may_interleave},
      {"--micro-batch-size", "1,2,4,8,16 (the best plan has the largest that was tried)",
       is_largest},
  };
  std::string text;
  for (const Untried& next : all)
    if (next.may_help && !question.gives(next.flag))
      text += fmt::format("{}{} {}", text.empty() ? "" : ", ", next.flag, next.values);
  if (!text.empty()) print_message("bubblescope: not tried, and may be faster: {}\n", text);
}

void note_missing_memory(std::span<const Outcome> outcomes, std::int32_t gpus,
                         std::int64_t multiple) {
  const Outcome nothing;
  const Outcome* closest = &nothing;
  for (const Outcome& outcome : outcomes) {
    if (outcome.plan && outcome.refusal.empty()) return;
    if (outcome.is_closer_than(*closest)) closest = &outcome;
  }
  if (closest == &nothing) return;
  if (closest->over_cap) {
    print_message(
        "bubblescope: the configuration that lacks the least needs {} memory than --cap allows; "
        "raise --cap, or leave it out\n",
        more_than_a_limit(closest->excess));
    return;
  }
  const auto enough = static_cast<std::int64_t>(std::ceil(gpus * (1 + closest->excess)));
  print_message(
      "bubblescope: the configuration that lacks the least needs {} memory than its devices have; "
      "give about {} or more of --gpus, devices with more memory, or a smaller model\n",
      more_than_a_limit(closest->excess), ((enough - 1) / multiple + 1) * multiple);
}

std::string find_pytorch_refusal(const Plan& plan, const PredictInputs& inputs) {
  if (!traces::frameworks_of(plan.configuration).empty()) return "";
  return traces::why_not_pytorch_csv(order_of(plan.configuration, inputs));
}

void note_unwritten_settings(const traces::TrainingSettings& training, const ModelOptions& model) {
  std::vector<std::string> unwritten;
  if (training.zero_stage > 1)
    unwritten.push_back(fmt::format("ZeRO stage {} (Megatron-FSDP)", training.zero_stage));
  if (training.fp8) unwritten.emplace_back("GEMMs in fp8 (a format and a recipe)");
  const RuntimeDef* const runtime = Registry<RuntimeDef>::instance().find(model.runtime);
  if (runtime != nullptr && (runtime->name == "nemo" || runtime->errors_of == "nemo"))
    unwritten.emplace_back("the fused loss and the token dispatcher of Megatron-Bridge's recipes");
  if (!unwritten.empty())
    print_message(
        "bubblescope: the predicted steps also have {}, which these arguments leave out\n",
        fmt::join(unwritten, " and "));
}

void warn_of_other_runtime(traces::Framework framework, const ModelOptions& model) {
  const bool is_megatron = framework == traces::Framework::kMegatron;
  const std::string_view own = is_megatron ? "megatron" : "torchtitan";
  const RuntimeDef* const runtime = Registry<RuntimeDef>::instance().find(model.runtime);
  if (runtime == nullptr || runtime->name.starts_with(own)) return;
  if (is_megatron && runtime->names_modules) return;  // NeMo runs Megatron-Core's pipeline
  print_message(
      "bubblescope: the plans are predicted for --runtime {0}; --runtime {1} plans for {1}\n",
      runtime->name, own);
}

}  // namespace bubblescope::tools

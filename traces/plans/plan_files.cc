// Writes plans for scripts: json and csv.
#include <fmt/format.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/ir/send_budget.h"
#include "traces/json/json_writer.h"
#include "traces/plans/plan_table.h"

namespace bubblescope::traces {

namespace {

void write_idle(JsonWriter& json, const Plan& plan) {
  json.key("mean_idle_by_cause_ns").begin_object();
  // Plans have no arrivals, and launches only where the cost file has gaps.
  constexpr auto kRare = static_cast<std::size_t>(IdleCause::kArrival);
  for (std::size_t cause = 0; cause < plan.mean_idle.size(); ++cause)
    if (cause < kRare || plan.mean_idle[cause] != 0)
      json.member(name(static_cast<IdleCause>(cause)), plan.mean_idle[cause]);
  json.end_object();
}

std::vector<std::string_view> names_of(const RecomputeModules& modules) {
  std::vector<std::string_view> names;
  for (const Named<RecomputeModule>& known : kRecomputeModules)
    if (modules.has(known.choice)) names.push_back(known.name);
  return names;
}

/// The members of a configuration, in an object that is open.
void write_configuration(JsonWriter& json, const Configuration& configuration) {
  const Shape& shape = configuration.shape;
  json.member("schedule", configuration.schedule).member("pp", shape.ranks);
  json.member("vpp", shape.chunks).member("tp", configuration.tensor);
  json.member("cp", configuration.context).member("ep", configuration.expert);
  json.member("etp", configuration.expert_tensor).member("dp", configuration.data);
  json.member("microbatches", shape.microbatches);
  json.member("micro_batch_size", configuration.micro_batch_size);
  json.member("recompute", name(configuration.recompute));
  if (!configuration.modules.empty())
    json.array("recompute_modules", names_of(configuration.modules));
  if (configuration.recomputed != RecomputedLayers{})
    json.member("recompute_method", name_of(kRecomputeMethods, configuration.recomputed.method))
        .member("recompute_num_layers", configuration.recomputed.number);
  json.member("split", name_of(kLayerSplits, configuration.split));
  if (configuration.send_budget == kUnlimitedSends)
    json.member("send_budget", "none");
  else if (configuration.send_budget > 0)
    json.member("send_budget", configuration.send_budget);
  if (configuration.lookahead)
    json.member("unshard_lookahead", to_string(*configuration.lookahead));
  if (shape.slices > 1) json.member("slices", shape.slices);
  if (shape.group_size) json.member("microbatch_group_size", *shape.group_size);
}

/// Where the step may lie, and by which published runs; or null, and for a model why.
void write_interval(JsonWriter& json, const Plan& plan, const std::optional<KnownErrors>& errors) {
  json.key("interval");
  if (!errors || !plan.no_errors.empty()) {
    json.null();
    if (!plan.no_errors.empty()) json.member("no_interval", plan.no_errors);
    return;
  }
  const StepInterval interval = compute_interval(plan.step, *errors);
  json.begin_object().member("low_ns", interval.low).member("high_ns", interval.high);
  json.member("from", errors->from());
  if (const std::string name = find_unpublished(plan, *errors); !name.empty())
    json.member("unpublished_schedule", name);
  json.end_object();
}

void write_shortest(JsonWriter& json, std::string_view name, std::optional<double> value) {
  json.key(name);
  value ? json.shortest(*value) : json.null();
}

}  // namespace

void write_plan(JsonWriter& json, const Plan& plan, const std::optional<KnownErrors>& errors,
                const std::string& command) {
  const auto if_any = [](const std::string& text) {
    return text.empty() ? std::nullopt : std::optional(text);
  };
  json.begin_object();
  write_configuration(json, plan.configuration);
  json.member_or_null("layout", if_any(plan.layout)).member("step_ns", plan.step);
  json.member("outside_pipeline_ns", plan.outside_pipeline);
  json.key("ns_per_sample")
      .shortest(plan.nanos_per_sample())
      .key("bubble_ratio")
      .shortest(plan.bubble_ratio);
  json.member("lower_bound_ns", plan.lower_bound);
  json.member_or_null("peak_memory_bytes", plan.peak_bytes);
  json.key("peak_activations")
      .shortest(plan.peak_activations)
      .key("peak_units")
      .shortest(plan.peak_units);
  write_shortest(json, "mfu", plan.mfu);
  write_shortest(json, "tokens_per_second", plan.tokens_per_second);
  json.member_or_null("gradients",
                      if_any(plan.gradients ? name_of(kGradientFormats, *plan.gradients) : ""));
  json.member_or_null("fits", plan.head_room ? std::optional(*plan.head_room >= 0) : std::nullopt);
  json.member_or_null("head_room_bytes", plan.head_room).member("tie_group", plan.tie_group);
  write_interval(json, plan, errors);
  json.member("mean_busy_ns", plan.mean_busy);
  write_idle(json, plan);
  if (!command.empty()) json.member("command", command);
  json.end_object();
}

namespace {

void write_break_even(JsonWriter& json, const BreakEven& found) {
  json.begin_object().member("parameter", found.parameter).member("now_ns", found.now);
  json.member("at_ns", found.at);
  for (const char* key : {"runner_up", "rival"}) {  // its name, and its old name
    json.key(key).begin_object();
    write_configuration(json, found.runner_up);
    json.end_object();
  }
  json.end_object();
}

void write_refusal(JsonWriter& json, const Refusal& refused) {
  json.begin_object().member("schedule", refused.schedule);
  json.member("configurations", refused.configurations).member("reason", refused.reason);
  json.key("closest");
  if (refused.closest) {
    json.begin_object();
    write_configuration(json, *refused.closest);
    json.end_object();
  } else {
    json.null();
  }
  json.end_object();
}

}  // namespace

std::string write_plan_json(const PlanTable& table) {
  std::string out;
  JsonWriter json(out);
  json.begin_object().member("format", "bubblescope-plan/1");
  json.member("configurations", table.configurations).key("plans").begin_array();
  for (std::size_t at = 0; at < table.plans.size(); ++at)
    write_plan(json.line(0), table.plans[at], table.errors,
               at < table.commands.size() ? table.commands[at] : "");
  json.end_array().line(0).array("pareto", find_pareto_front(table.plans));
  json.line(0).key("break_even").begin_array();
  for (const BreakEven& found : table.break_evens) write_break_even(json.line_between(0), found);
  json.end_array().line(0).member_or_null("break_even_best", table.break_even_best);
  json.line(0).array("break_even_not_compared", table.not_compared);
  json.line(0).key("refused").begin_array();
  for (const Refusal& refused : table.refusals) write_refusal(json.line_between(0), refused);
  json.end_array().end_object();
  return out + '\n';
}

namespace {

std::string layers_text(const Configuration& which) {
  if (which.recompute != Recompute::kFull) return ",,";
  return fmt::format(",{},{}", name_of(kRecomputeMethods, which.recomputed.method),
                     which.recomputed.number);
}

/// The columns of a csv that not every table needs, in their order.
struct RareColumns {
  explicit RareColumns(const PlanTable& table) : errors(table.errors) {
    for (const Plan& plan : table.plans) {
      const Configuration& which = plan.configuration;
      budgets |= which.send_budget > 0;
      lookaheads |= which.lookahead.has_value();
      slices |= which.shape.slices > 1;
      groups |= which.shape.group_size.has_value();
      outside |= plan.outside_pipeline > 0;
      expert_tensor |= which.expert_tensor != which.tensor;
      modules |= !which.modules.empty();
      layers |= which.recomputed != RecomputedLayers{};
      intervals |= errors && plan.no_errors.empty();
    }
  }

  std::string names() const {
    std::string text = budgets ? ",send_budget" : "";
    text += lookaheads ? ",unshard_lookahead" : "";
    text += slices ? ",slices" : "";
    text += groups ? ",microbatch_group_size" : "";
    text += outside ? ",outside_pipeline_ns" : "";
    text += expert_tensor ? ",etp" : "";
    text += modules ? ",recompute_modules" : "";
    text += layers ? ",recompute_method,recompute_num_layers" : "";
    return text + (intervals ? ",low_ns,high_ns" : "");
  }

  std::string values(const Plan& plan) const {
    const Configuration& which = plan.configuration;
    std::string text = budgets ? "," + budget_text(which.send_budget) : "";
    if (lookaheads) text += "," + (which.lookahead ? to_string(*which.lookahead) : "none");
    if (slices) text += fmt::format(",{}", which.shape.slices);
    if (groups) text += which.shape.group_size ? fmt::format(",{}", *which.shape.group_size) : ",";
    if (outside) text += fmt::format(",{}", plan.outside_pipeline);
    if (expert_tensor) text += fmt::format(",{}", which.expert_tensor);
    if (modules) text += fmt::format(",\"{}\"", to_text(which.modules));
    if (layers) text += layers_text(which);
    if (!intervals) return text;
    if (!plan.no_errors.empty()) return text + ",,";
    const StepInterval interval = compute_interval(plan.step, *errors);
    return text + fmt::format(",{},{}", interval.low, interval.high);
  }

  const std::optional<KnownErrors>& errors;
  bool budgets = false;
  bool lookaheads = false;
  bool slices = false;
  bool groups = false;
  bool outside = false;
  bool expert_tensor = false;
  bool modules = false;
  bool layers = false;
  bool intervals = false;
};

}  // namespace

std::string write_plan_csv(const PlanTable& table) {
  const RareColumns rare(table);
  std::string text =
      "schedule,pp,vpp,tp,cp,ep,dp,microbatches,micro_batch_size,recompute,step_ns,ns_per_sample,"
      "bubble_ratio,lower_bound_ns,peak_memory_bytes,peak_activations,peak_units,mfu,"
      "tokens_per_second,split,layout,gradients,head_room_bytes,tie_group";
  text += rare.names() + '\n';
  for (const Plan& plan : table.plans) {
    const Configuration& which = plan.configuration;
    text += fmt::format(
        "{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}", which.schedule,
        which.shape.ranks, which.shape.chunks, which.tensor, which.context, which.expert,
        which.data, which.shape.microbatches, which.micro_batch_size, name(which.recompute),
        plan.step, plan.nanos_per_sample(), plan.bubble_ratio, plan.lower_bound,
        plan.peak_bytes ? std::to_string(*plan.peak_bytes) : "", plan.peak_activations,
        plan.peak_units, plan.mfu ? fmt::format("{}", *plan.mfu) : "",
        plan.tokens_per_second ? fmt::format("{}", *plan.tokens_per_second) : "",
        name_of(kLayerSplits, which.split), plan.layout,
        plan.gradients ? name_of(kGradientFormats, *plan.gradients) : "",
        plan.head_room ? std::to_string(*plan.head_room) : "", plan.tie_group);
    text += rare.values(plan) + '\n';
  }
  return text;
}

}  // namespace bubblescope::traces

// Writes plans for scripts: json and csv.
#include <fmt/format.h>

#include "traces/json_string.h"
#include "traces/plan_table.h"

namespace bubblescope {

namespace {

template <class Number>
std::string number_or_null(const std::optional<Number>& number) {
  return number ? fmt::format("{}", *number) : "null";
}

std::string write_idle(const Plan& plan) {
  std::string text;
  for (std::size_t cause = 0; cause < kIdleCauses; ++cause)
    text += fmt::format("{}\"{}\":{}", cause == 0 ? "" : ",", name(static_cast<IdleCause>(cause)),
                        plan.mean_idle[cause]);
  return text;
}

/// Writes the configuration's members, without braces.
std::string write_configuration(const Configuration& configuration) {
  const Shape& shape = configuration.shape;
  return fmt::format(
      "\"schedule\":{},\"pp\":{},\"vpp\":{},\"tp\":{},\"cp\":{},\"ep\":{},\"etp\":{},\"dp\":{},"
      "\"microbatches\":{},\"micro_batch_size\":{},\"recompute\":{},\"split\":{}",
      json_string(configuration.schedule), shape.ranks, shape.chunks, configuration.tensor,
      configuration.context, configuration.expert, configuration.expert_tensor, configuration.data,
      shape.microbatches, configuration.micro_batch_size,
      json_string(std::string(name(configuration.recompute))),
      json_string(name_of(kLayerSplits, configuration.split)));
}

/// The interval of the step time and its source, such as "h100/megatron/bf16", or null.
std::string write_interval(const Plan& plan, const std::optional<KnownErrors>& errors) {
  if (!errors) return "null";
  const StepInterval interval = interval_of(plan.step, *errors);
  return fmt::format("{{\"low_ns\":{},\"high_ns\":{},\"from\":{}}}", interval.low, interval.high,
                     json_string(errors->from()));
}

std::string write_plan(const Plan& plan, const std::optional<KnownErrors>& errors) {
  return fmt::format(
      "{{{},\"layout\":{},\"step_ns\":{},\"ns_per_sample\":{},\"bubble_ratio\":{},\"lower_bound_"
      "ns\":{},"
      "\"peak_memory_bytes\":{},\"peak_activations\":{},\"peak_units\":{},\"mfu\":{},"
      "\"tokens_per_second\":{},\"gradients\":{},\"fits\":{},\"head_room_bytes\":{},"
      "\"tie_group\":{},\"interval\":{},\"mean_busy_ns\":{},\"mean_idle_by_cause_ns\":{{{}}}}}",
      write_configuration(plan.configuration),
      plan.layout.empty() ? "null" : json_string(plan.layout), plan.step, plan.nanos_per_sample(),
      plan.bubble_ratio, plan.lower_bound, number_or_null(plan.peak_bytes), plan.peak_activations,
      plan.peak_units, number_or_null(plan.mfu), number_or_null(plan.tokens_per_second),
      plan.gradients ? json_string(name_of(kGradientFormats, *plan.gradients)) : "null",
      plan.head_room ? (*plan.head_room >= 0 ? "true" : "false") : "null",
      number_or_null(plan.head_room), plan.tie_group, write_interval(plan, errors), plan.mean_busy,
      write_idle(plan));
}

/// Writes each item with `write(item)`, separated by commas.
template <class Items, class Write>
std::string joined(const Items& items, const Write& write, std::string_view separator) {
  std::string text;
  for (const auto& item : items) {
    if (!text.empty()) text += separator;
    text += write(item);
  }
  return text;
}

}  // namespace

std::string write_plan_json(const PlanTable& table) {
  const auto refusal = [](const Refusal& refused) {
    const std::string closest =
        refused.closest ? fmt::format("{{{}}}", write_configuration(*refused.closest)) : "null";
    return fmt::format("{{\"schedule\":{},\"configurations\":{},\"reason\":{},\"closest\":{}}}",
                       json_string(refused.schedule), refused.configurations,
                       json_string(refused.reason), closest);
  };
  const auto break_even = [](const BreakEven& found) {
    return fmt::format("{{\"parameter\":\"{}\",\"now_ns\":{},\"at_ns\":{},\"rival\":{{{}}}}}",
                       found.parameter, found.now, found.at, write_configuration(found.rival));
  };
  const auto index = [](std::size_t at) { return std::to_string(at); };
  return fmt::format(
      "{{\"format\":\"bubblescope-plan/"
      "1\",\"configurations\":{},\"plans\":[\n{}],\n\"pareto\":[{}],"
      "\n\"break_even\":[{}],\n\"refused\":[{}]}}\n",
      table.configurations,
      joined(
          table.plans, [&](const Plan& plan) { return write_plan(plan, table.errors); }, ",\n"),
      joined(pareto_front(table.plans), index, ","), joined(table.break_evens, break_even, ",\n"),
      joined(table.refusals, refusal, ",\n"));
}

std::string write_plan_csv(const PlanTable& table) {
  std::string text =
      "schedule,pp,vpp,tp,cp,ep,dp,microbatches,micro_batch_size,recompute,step_ns,ns_per_sample,"
      "bubble_ratio,lower_bound_ns,peak_memory_bytes,peak_activations,peak_units,mfu,"
      "tokens_per_second,split,layout,gradients,head_room_bytes,tie_group\n";
  for (const Plan& plan : table.plans) {
    const Configuration& which = plan.configuration;
    text += fmt::format(
        "{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}\n", which.schedule,
        which.shape.ranks, which.shape.chunks, which.tensor, which.context, which.expert,
        which.data, which.shape.microbatches, which.micro_batch_size, name(which.recompute),
        plan.step, plan.nanos_per_sample(), plan.bubble_ratio, plan.lower_bound,
        plan.peak_bytes ? std::to_string(*plan.peak_bytes) : "", plan.peak_activations,
        plan.peak_units, plan.mfu ? fmt::format("{}", *plan.mfu) : "",
        plan.tokens_per_second ? fmt::format("{}", *plan.tokens_per_second) : "",
        name_of(kLayerSplits, which.split), plan.layout,
        plan.gradients ? name_of(kGradientFormats, *plan.gradients) : "",
        plan.head_room ? std::to_string(*plan.head_room) : "", plan.tie_group);
  }
  return text;
}

}  // namespace bubblescope

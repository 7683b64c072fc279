// Looks for what was named on the command line in the configurations and their outcomes.
#include "tools/plan/left_out.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>

#include "sim/ir/counted.h"
#include "sim/model/schedule_def.h"
#include "sim/model/schedule_refusal.h"
#include "sim/model/stage_loads.h"
#include "tools/flags/words.h"
#include "tools/plan/what_if.h"

namespace bubblescope::tools {

namespace {

std::vector<std::string> list_named_schedules(const std::string& list) {
  std::vector<std::string> names;
  for (const std::string& word : split(list, ',')) {
    const std::string name = normalize_name(trim(word));
    if (name.empty() || names_a_group(name)) continue;
    const std::string& found = find_schedule(name).name;
    if (std::find(names.begin(), names.end(), found) == names.end()) names.push_back(found);
  }
  return names;
}

std::string explain_left_out(const ScheduleDef& def, const PlanQuestion& question,
                             bool is_configured) {
  if (is_configured) return "on one rank its order, and with it its plan, is that of another one";
  const auto needs = [](const char* flag, std::int32_t count) {
    return fmt::format("needs {} {} or more: with fewer it is another schedule", flag, count);
  };
  const std::optional<std::int32_t> slices = question.predict.shape.slices;
  if (slices && *slices < def.default_slices) return needs("--slices", def.default_slices);
  const std::vector<std::int32_t>& chunks = question.axes.chunks;
  const auto is_few = [&](std::int32_t count) { return count < def.default_chunks; };
  if (!def.implied_chunks && !chunks.empty() && std::all_of(chunks.begin(), chunks.end(), is_few))
    return needs("--vpp", def.default_chunks);
  return "each of its shapes has more stages than the model has layers for, interleaves on one "
         "rank, or has too many ops";
}

}  // namespace

std::vector<traces::Refusal> find_left_out(const PlanQuestion& question,
                                           const std::vector<Configuration>& configurations,
                                           const traces::PlanTable& table) {
  std::vector<traces::Refusal> left_out;
  for (const std::string& name : question.not_in_profile)
    left_out.push_back(
        {name, refuse_profile(find_schedule(name), question.predict.shape.profile), 0, {}});
  for (const std::string& name : list_named_schedules(question.schedules)) {
    const auto is_planned = [&](const Plan& plan) { return plan.configuration.schedule == name; };
    const auto is_refused = [&](const auto& refused) { return refused.schedule == name; };
    if (std::any_of(table.plans.begin(), table.plans.end(), is_planned)) continue;
    if (std::any_of(table.refusals.begin(), table.refusals.end(), is_refused)) continue;
    if (std::any_of(left_out.begin(), left_out.end(), is_refused)) continue;
    traces::Refusal& next = left_out.emplace_back();
    next.schedule = name;
    next.configurations = std::count_if(configurations.begin(), configurations.end(), is_refused);
    next.reason = explain_left_out(find_schedule(name), question, next.configurations > 0);
  }
  return left_out;
}

namespace {

/// One flag that takes a list of numbers.
struct NumberAxis {
  std::string flag;
  std::vector<std::int32_t> ModelAxes::*numbers;
  std::int32_t (*of)(const Configuration&);
};

const std::vector<NumberAxis>& number_axes() {
  static const std::vector<NumberAxis> all{
      {"--tp", &ModelAxes::tensor, [](const Configuration& which) { return which.tensor; }},
      {"--cp", &ModelAxes::context, [](const Configuration& which) { return which.context; }},
      {"--pp", &ModelAxes::ranks, [](const Configuration& which) { return which.shape.ranks; }},
      {"--vpp", &ModelAxes::chunks, [](const Configuration& which) { return which.shape.chunks; }},
      {"--ep", &ModelAxes::expert, [](const Configuration& which) { return which.expert; }},
      {"--etp", &ModelAxes::expert_tensor,
       [](const Configuration& which) { return which.expert_tensor; }},
      {"--micro-batch-size", &ModelAxes::micro_batch_sizes,
       [](const Configuration& which) { return which.micro_batch_size; }},
  };
  return all;
}

bool can_divide_devices(const ModelAxes& axes) {
  for (const std::int32_t tensor : axes.tensor)
    for (const std::int32_t context : axes.context)
      for (const std::int32_t ranks : axes.ranks)
        if (axes.gpus % (std::int64_t{tensor} * context * ranks) == 0) return true;
  return false;
}

/// The reason why a schedule is never planned with this number of chunks; empty where there is none
/// but that of its stages.
std::string refuse_count(const ScheduleDef& def, std::int32_t chunks) {
  if (!takes_chunks(def)) return fmt::format("{} always has {}", def.name, *def.implied_chunks);
  if (def.implied_chunks && chunks % *def.implied_chunks != 0)
    return fmt::format("{} takes multiples of {}", def.name, *def.implied_chunks);
  if (chunks < def.default_chunks)
    return fmt::format("{} needs {} or more: with fewer it is another schedule", def.name,
                       def.default_chunks);
  return {};
}

/// The reasons of all planned schedules against this number of chunks; empty where one has none.
std::string refuse_count(std::int32_t chunks, const std::vector<Configuration>& configurations) {
  std::vector<std::string> reasons;
  for (const Configuration& which : configurations) {
    const std::string reason = refuse_count(find_schedule(which.schedule), chunks);
    if (reason.empty()) return {};
    if (std::find(reasons.begin(), reasons.end(), reason) == reasons.end())
      reasons.push_back(reason);
  }
  return fmt::format("{}", fmt::join(reasons, "; "));
}

/// The reason why no configuration of a model has this number.
std::string explain_unused(const NumberAxis& axis, std::int32_t number,
                           const ModelPlanner& planner) {
  ModelAxes axes = planner.axes();
  axes.*axis.numbers = {number};
  if (!can_divide_devices(axes)) {
    const auto write = [&](const char* flag) {
      return axis.flag == flag ? fmt::format("{} {}", flag, number) : std::string(flag);
    };
    return fmt::format("no {} x {} x {} divides {}", write("--tp"), write("--cp"), write("--pp"),
                       counted(axes.gpus, "device"));
  }
  const std::int64_t stages = max_stages(planner.model().model);
  if (axis.flag == "--pp" && number > stages)
    return fmt::format("the layers of the model make {} at most", counted(stages, "stage"));
  if (axis.flag == "--etp") return "it does not divide the ranks of any stage";
  if (axis.flag == "--vpp")
    return fmt::format(
        "stages would be more than the {} that the model's layers make, or some schedules have "
        "chunks of their own",
        stages);
  return fmt::format(
      "the batch of {} cannot be divided among the data ranks in whole micro-batches",
      counted(axes.global_batch, "sample"));
}

/// The reason of the first refusal among the configurations of a number; empty where there is none.
/// nullopt where one of them has a plan, even one that does not fit.
std::optional<std::string> find_refusal(const NumberAxis& axis, std::int32_t number,
                                        const std::vector<Configuration>& configurations,
                                        const std::vector<Outcome>& outcomes) {
  std::string refusal;
  for (std::size_t at = 0; at < configurations.size(); ++at) {
    if (axis.of(configurations[at]) != number) continue;
    if (outcomes[at].plan) return {};
    if (refusal.empty()) refusal = outcomes[at].refusal;
  }
  return refusal;
}

}  // namespace

std::vector<std::string> find_unused_numbers(const ModelAxes& listed, const ModelPlanner* planner,
                                             const std::vector<Configuration>& configurations,
                                             const std::vector<Outcome>& outcomes) {
  // Where nothing has a plan, each schedule's refusal says why, once.
  const bool any_plan = std::any_of(outcomes.begin(), outcomes.end(), [](const Outcome& outcome) {
    return outcome.plan.has_value();
  });
  std::vector<std::string> unused;
  for (const NumberAxis& axis : number_axes())
    for (const std::int32_t number : listed.*axis.numbers) {
      auto reason = find_refusal(axis, number, configurations, outcomes);
      if (!reason || (!any_plan && !reason->empty())) continue;
      if (reason->empty() && axis.flag == "--vpp") reason = refuse_count(number, configurations);
      if (reason->empty())
        reason = planner != nullptr ? explain_unused(axis, number, *planner)
                                    : "no schedule has so many chunks";
      unused.push_back(fmt::format("{} {}: {}", axis.flag, number, *reason));
    }
  return unused;
}

}  // namespace bubblescope::tools
